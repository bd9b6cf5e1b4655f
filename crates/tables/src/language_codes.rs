//! Converts language codes to the form that Common Crawl's index uses.

/// Returns the three-letter code (ISO 639-3) of the language in a BCP 47 tag; `None` if the
/// language of the tag is unknown.
pub(crate) fn iso_639_3(tag: &str) -> Option<String> {
    let primary = tag.split('-').next()?.to_ascii_lowercase();
    match primary.len() {
        2 => {
            let mut entries = TWO_AND_THREE_LETTERS.split(' ');
            let three = entries.find_map(|codes| codes.strip_prefix(&*primary))?;
            Some(three.to_owned())
        }
        3 if primary.bytes().all(|byte| byte.is_ascii_lowercase()) => Some(primary),
        _ => None,
    }
}

/// For each language with a two-letter code (ISO 639-1): that code, followed by its three-letter
/// code. For a language with several variants, the three-letter code is the one that covers all
/// variants, such as `zho` for Chinese.
const TWO_AND_THREE_LETTERS: &str = "\
    aaaar ababk aeave afafr akaka amamh anarg arara asasm avava ayaym azaze babak bebel bgbul \
    bibis bmbam bnben bobod brbre bsbos cacat ceche chcha cocos crcre csces cuchu cvchv cycym \
    dadan dedeu dvdiv dzdzo eeewe elell eneng eoepo esspa etest eueus fafas ffful fifin fjfij \
    fofao frfra fyfry gagle gdgla glglg gngrn guguj gvglv hahau heheb hihin hohmo hrhrv hthat \
    huhun hyhye hzher iaina idind ieile igibo iiiii ikipk ioido isisl itita iuiku jajpn jvjav \
    kakat kgkon kikik kjkua kkkaz klkal kmkhm knkan kokor krkau kskas kukur kvkom kwcor kykir \
    lalat lbltz lglug lilim lnlin lolao ltlit lulub lvlav mgmlg mhmah mimri mkmkd mlmal mnmon \
    mrmar msmsa mtmlt mymya nanau nbnob ndnde nenep ngndo nlnld nnnno nonor nrnbl nvnav nynya \
    ococi ojoji omorm orori ososs papan pipli plpol pspus ptpor quque rmroh rnrun roron rurus \
    rwkin sasan scsrd sdsnd sesme sgsag shhbs sisin skslk slslv smsmo snsna sosom sqsqi srsrp \
    ssssw stsot susun svswe swswa tatam tetel tgtgk ththa titir tktuk tltgl tntsn toton trtur \
    tstso tttat twtwi tytah uguig ukukr ururd uzuzb veven vivie vovol wawln wowol xhxho yiyid \
    yoyor zazha zhzho zuzul";

#[cfg(test)]
mod tests {
    use super::{TWO_AND_THREE_LETTERS, iso_639_3};

    #[test]
    fn a_tag_has_the_three_letters_of_its_language() {
        let check = |tag, code: Option<&str>| assert_eq!(iso_639_3(tag).as_deref(), code, "{tag}");
        check("de", Some("deu"));
        check("DE-at", Some("deu"));
        check("zh-Hant-TW", Some("zho"));
        check("nds", Some("nds"));
        check("xx", None);
        check("x-klingon", None);
        check("", None);
        check("d\u{e9}", None);
        let mut entries = TWO_AND_THREE_LETTERS.split(' ');
        assert!(entries.all(|codes| codes.len() == 5));
    }
}
