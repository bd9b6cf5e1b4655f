//! Detects soft 404s: error pages for a missing page that are sent with a success status.
//!
//! A title or heading is split at punctuation. It counts as an error message only if one of the
//! parts is nothing but an error message. So "404 - Tea House" counts, but "Room 404" and "Not
//! found in the library?" do not.

use std::collections::HashSet;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use crate::words::{Stemmer, WordIterator};

/// Maximum words of main text that an error page may have.
const MAX_WORDS: usize = 120;
/// Maximum words of main text if the title or heading contains only the status code, not a whole
/// message. Lower than `MAX_WORDS`, because a number may have other meanings.
const MAX_WORDS_BESIDE_NUMBER: usize = 40;
/// Maximum bytes of a title or heading that are examined.
const MAX_NAME_BYTES: usize = 512;

const NUMBER: &str = "404";

/// Phrases that mark a text as an error message, in scripts that separate words with spaces.
const PHRASES: [&str; 52] = [
    "not found",
    "not be found",
    "can't be found",
    "cannot be found",
    "couldn't be found",
    "couldn't find",
    "can't find",
    "could not find",
    "cannot find",
    "doesn't exist",
    "does not exist",
    "no longer exists",
    "no such page",
    "no such file",
    "nothing found",
    "page missing",
    "page unavailable",
    "nicht gefunden",
    "nicht finden",
    "existiert nicht",
    "gibt es nicht",
    "nicht vorhanden",
    "introuvable",
    "n'existe pas",
    "n'existe plus",
    "non trouvée",
    "non trouvé",
    "pas été trouvée",
    "no encontrada",
    "no encontrado",
    "no existe",
    "no se encontró",
    "no se ha encontrado",
    "non trovata",
    "non trovato",
    "non esiste",
    "não encontrada",
    "não encontrado",
    "não existe",
    "niet gevonden",
    "bestaat niet",
    "hittades inte",
    "finns inte",
    "ikke fundet",
    "ikke funnet",
    "findes ikke",
    "не найдена",
    "не найден",
    "не найдено",
    "не существует",
    "nie znaleziono",
    "nie istnieje",
];

/// Phrases that mark a text as an error message, in scripts that don't separate words with spaces.
const UNSPACED_PHRASES: [&str; 13] = [
    "見つかりません",
    "存在しません",
    "ありません",
    "找不到",
    "没有找到",
    "沒有找到",
    "无法找到",
    "無法找到",
    "未能找到",
    "未找到",
    "不存在",
    "찾을 수 없습니다",
    "존재하지 않습니다",
];

/// Other words that may occur in an error message.
const WORDS: [&str; 13] = [
    // English.
    "404 http status code error err message page file document url address link resource content \
     article post product item entry category object result results listing user site website web \
     server sorry oops whoops ooops uh oh oh-no hmm apologies a an the this that it is are was were \
     be been has have had you you're your we we're i'm our i us they not no found find finding \
     exist exists doesn't does do can't cannot can could couldn't longer anymore nothing such here \
     there looking look for search searched searching requested request asked access tried trying \
     reach on of at in to by from seems seem looks like may might moved removed deleted gone \
     missing unavailable available broken invalid wrong something went or and don't permission \
     view see private archived directory folder thread topic profile job",
    // German.
    "seite datei inhalt artikel produkt adresse fehler fehlermeldung leider ups hoppla \
     entschuldigung die der das den dem diese dieser dieses diesem eine angeforderte angefragte \
     aufgerufene gesuchte gewünschte wurde wurden werden konnte konnten kann können ist es gibt sie \
     suchen auf unter von wir nicht gefunden finden existiert vorhanden mehr",
    // French.
    "page fichier document contenu erreur désolé désolée désolés oups la le les cette ce l' l'url \
     que vous recherchez cherchez demandée demandé est a été n'a n'est n'existe pas plus non \
     trouvée trouvé introuvable",
    // Spanish.
    "página archivo contenido error lo sentimos siento ups la el esta este que buscas busca \
     solicitada solicitado se ha encontró encontrado encontrada fue no existe",
    // Italian.
    "pagina file contenuto errore spiacenti siamo ops la il questa che stai cercando cerchi \
     richiesta richiesto è stata stato non trovata trovato esiste",
    // Portuguese.
    "página arquivo conteúdo erro desculpe ops a o esta que procura procurada solicitada você foi \
     não encontrada encontrado existe",
    // Dutch.
    "pagina bestand fout fout sorry helaas oeps de het deze die u je zoekt zoekt gevraagde \
     opgevraagde is werd kon kan niet worden gevonden bestaat meer",
    // Swedish.
    "sidan sida fel tyvärr hoppsan den du söker söker begärda kunde hittades hittas inte finns",
    // Danish and Norwegian.
    "siden side fejl feil desværre beklager den du leder leter etter efter blev ble kunne findes \
     finnes ikke fundet funnet",
    // Russian.
    "страница страницы файл ошибка к сожалению извините такая такой запрашиваемая запрошенная \
     искомая вы ищете по вашему запросу ничего не найдена найден найдено существует нет",
    // Polish.
    "strona strony plik błąd przepraszamy niestety ta tej podana żądana szukana której szukasz \
     została nie znaleziono znaleziona istnieje",
    // Japanese and Chinese words, into which text without spaces is split.
    "ページ ファイル お探しの ご指定の 指定された 要求された アクセスした 該当する エラー 申し訳 \
     が は を も で ございません でした url 页面 頁面 网页 網頁 文件 您 你 要 访问 訪問 请求 \
     的 该 該 此 了 抱歉 对不起 對不起 错误 錯誤",
    // Korean.
    "페이지를 페이지가 페이지 요청하신 찾으시는 찾을 수 없습니다 존재하지 않습니다 오류 죄송합니다",
];

/// Returns true if the title or the first heading is an error message, and the page has little
/// text.
pub(crate) fn says_missing(title: &str, heading: &str, text: &str) -> bool {
    let has_at_most = |words| {
        WordIterator::new(text, Stemmer::none())
            .nth(words)
            .is_none()
    };
    match (Soft404TitleMatch::of(title), Soft404TitleMatch::of(heading)) {
        (Soft404TitleMatch::Full, _) | (_, Soft404TitleMatch::Full) => has_at_most(MAX_WORDS),
        // The status code may be part of a name: the title "Peugeot 404" above the heading "404".
        (Soft404TitleMatch::NumberInName, _) => false,
        (Soft404TitleMatch::Number, _) | (_, Soft404TitleMatch::Number) => {
            has_at_most(MAX_WORDS_BESIDE_NUMBER)
                || has_at_most(MAX_WORDS) && has_phrase(&normalized(text))
        }
        _ => false,
    }
}

/// How clearly a title or heading is an error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Soft404TitleMatch {
    /// The text contains a whole message, such as "404 Not Found".
    Full,
    /// The text, or a part of it between punctuation, is only the status code.
    Number,
    /// The text contains the status code between other words, such as "Room 404".
    NumberInName,
    None,
}

impl Soft404TitleMatch {
    fn of(name: &str) -> Soft404TitleMatch {
        let name = normalized(&name[..name.floor_char_boundary(MAX_NAME_BYTES)]);
        let mut message = Soft404TitleMatch::None;
        for part in parts(&name) {
            let has_number = has_number(part);
            if is_of_message(part) {
                if has_phrase(part) || has_number && part.trim() != NUMBER {
                    return Soft404TitleMatch::Full;
                }
                if has_number && message == Soft404TitleMatch::None {
                    message = Soft404TitleMatch::Number;
                }
            } else if has_number {
                message = Soft404TitleMatch::NumberInName;
            }
        }
        message
    }
}

fn normalized(name: &str) -> String {
    name.to_lowercase().replace('\u{2019}', "'")
}

/// Splits a title at punctuation. A site may add its name to a title, and a message may have
/// several sentences.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    const ENDS: &str = "|•·»«›‹–—:.,;!?/。、！？：｜\n";
    let is_end = |c: char| ENDS.contains(c);
    name.split(is_end).flat_map(|part| part.split(" - "))
}

fn words_of(part: &str) -> impl Iterator<Item = &str> {
    let is_apart = |c: char| !c.is_alphanumeric() && c != '\'';
    part.split(is_apart).filter(|word| !word.is_empty())
}

/// Returns true if a part contains the status code `404` as a separate word.
fn has_number(part: &str) -> bool {
    part.match_indices(NUMBER).any(|(at, _)| {
        let (before, behind) = (&part[..at], &part[at + NUMBER.len()..]);
        !before.ends_with(|c: char| c.is_ascii_alphanumeric())
            && !behind.starts_with(|c: char| c.is_ascii_alphanumeric())
    })
}

/// Returns true if all words of a part may occur in an error message.
fn is_of_message(part: &str) -> bool {
    words_of(part).all(|word| is_known(word) || is_made_of_known(word))
}

fn is_known(word: &str) -> bool {
    static KNOWN: LazyLock<HashSet<&str, RandomState>> =
        LazyLock::new(|| WORDS.iter().flat_map(|words| words.split(' ')).collect());
    KNOWN.contains(word)
}

/// Returns true if a run of characters consists only of [`WORDS`] and phrases without spaces. At
/// each position, the longest match is used.
fn is_made_of_known(run: &str) -> bool {
    static UNSPACED: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let is_unspaced = |word: &&str| word.starts_with(|c: char| c >= '\u{2e80}');
        let words = WORDS.iter().flat_map(|words| words.split(' '));
        let words = words.chain(UNSPACED_PHRASES).filter(is_unspaced);
        words.chain([NUMBER]).collect()
    });
    let mut rest = run;
    while !rest.is_empty() {
        let words = UNSPACED.iter().filter(|word| rest.starts_with(**word));
        let lengths = words.map(|word| word.len());
        match lengths.max() {
            Some(bytes) => rest = &rest[bytes..],
            None => return false,
        }
    }
    true
}

/// Returns true if a text contains one of the error phrases.
fn has_phrase(text: &str) -> bool {
    let is_apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let has = |phrase: &&str| {
        text.match_indices(*phrase).any(|(at, _)| {
            is_apart(text[..at].chars().next_back())
                && is_apart(text[at + phrase.len()..].chars().next())
        })
    };
    PHRASES.iter().any(has) || UNSPACED_PHRASES.iter().any(|phrase| text.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::says_missing;

    /// Titles of error pages. If a line contains `#`, the text after it is the page's heading.
    const MISSING: &str = "\
        404\n\
        404 Not Found\n\
        Error 404\n\
        404 Error\n\
        HTTP Status 404 \u{2013} Not Found\n\
        404 - Tea House\n\
        404 | Tea House\n\
        Tea House \u{2014} 404\n\
        404: This page could not be found.\n\
        Page not found | Tea House\n\
        Page not found - Tea House\n\
        Tea House: page not found\n\
        Not Found\n\
        Page Not Found (404)\n\
        Archived Page Not Found\n\
        404 - File or directory not found.\n\
        Error 404 (Not Found)!!1\n\
        Oops! That page doesn\u{2019}t exist or is private.\n\
        The page could not be found or you don't have permission to view it\n\
        404エラー\n\
        404: NOT_FOUND\n\
        Oops! That page can\u{2019}t be found. | Tea House\n\
        Sorry, the page you are looking for doesn't exist\n\
        The requested URL was not found on this server\n\
        File not found\n\
        Nothing found | Tea House\n\
        Seite nicht gefunden \u{2013} Teehaus\n\
        Fehler 404: Die angeforderte Seite existiert nicht\n\
        Diese Seite konnte nicht gefunden werden\n\
        Page introuvable - Maison de th\u{e9}\n\
        Erreur 404 : cette page n\u{2019}existe pas\n\
        P\u{e1}gina no encontrada | Casa de t\u{e9}\n\
        Pagina non trovata - Casa del t\u{e8}\n\
        P\u{e1}gina n\u{e3}o encontrada\n\
        Pagina niet gevonden\n\
        Sidan hittades inte\n\
        Siden blev ikke fundet\n\
        Siden ble ikke funnet\n\
        Страница не найдена | Чайная\n\
        Nie znaleziono strony\n\
        ページが見つかりません | 茶店\n\
        お探しのページは見つかりませんでした\n\
        找不到页面 - 茶馆\n\
        您访问的页面没有找到\n\
        404页面不存在\n\
        페이지를 찾을 수 없습니다\n\
        Tea House#404\n\
        Tea House#Page not found\n\
        #We couldn't find that page";

    /// Titles of short pages that are not error pages. If a line contains `#`, the text after it is
    /// the page's heading.
    const THERE: &str = "\
        Peugeot 404\n\
        Peugeot 404 - Old cars\n\
        Peugeot 404 \u{2013} Old cars#404\n\
        Room 404\n\
        Hotel Tea | Room 404#Room 404\n\
        Highway 404 (Ontario)\n\
        Area code 404\n\
        404 Media\n\
        404 (film)\n\
        Order 404-12\n\
        Not found in the library?\n\
        Books not found in our catalogue\n\
        Lost and not found: a novel\n\
        404 Not Found explained\n\
        How to fix error 404\n\
        Why a page is not found by search engines\n\
        Species not found in Europe\n\
        Nicht gefunden im Katalog?\n\
        Zimmer 404\n\
        Chambre 404\n\
        Habitaci\u{f3}n 404\n\
        Дом 404\n\
        図書館で見つかりません\n\
        404号室\n\
        Archive of pages not found elsewhere\n\
        HTTP404 club\n\
        Tea#What is not found here grows elsewhere\n\
        Order 14042";

    fn is_missing(name: &str, text: &str) -> bool {
        let (title, heading) = name.split_once('#').unwrap_or((name, ""));
        says_missing(title, heading, text)
    }

    #[test]
    fn a_title_that_is_only_an_error_message_is_a_soft_404() {
        for name in MISSING.lines().map(str::trim) {
            assert!(
                is_missing(name, "Try the search, or go back to the start."),
                "{name}"
            );
        }
        for name in THERE.lines().map(str::trim) {
            assert!(
                !is_missing(name, "It has two beds and a view of the lake."),
                "{name}"
            );
        }
    }

    #[test]
    fn a_soft_404_has_little_text() {
        let long = "Tea is a drink. ".repeat(60);
        assert!(!is_missing("404 Not Found", &long));
        // A bare number can also be a name, such as that of a car.
        let text = "It was built from 1960 to 1975. ".repeat(8);
        assert!(!is_missing("404 - Peugeot", &text));
        assert!(is_missing(
            "404 - Peugeot",
            &format!("{text} This page does not exist.")
        ));
        assert!(is_missing("Error 404 - Peugeot", &text));
    }
}
