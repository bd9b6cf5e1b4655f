//! Tracking parameters, which count who followed a link. Servers return the same page with and
//! without them: only scripts or logs read them.

/// Full names of tracking parameters, in lower case, sorted.
const NAMES: [&str; 55] = [
    "__hsfp",
    "__hssc",
    "__hstc",
    "__s",
    "_branch_match_id",
    "_ga",
    "_gac",
    "_gl",
    "_hsenc",
    "_hsmi",
    "_kx",
    "_openstat",
    "campaignid_ga",
    "ceneo_spo",
    "cmpid",
    "dclid",
    "dm_i",
    "ef_id",
    "epik",
    "fb_action_ids",
    "fb_action_types",
    "fb_source",
    "fbclid",
    "gad_source",
    "gbraid",
    "gclid",
    "gclsrc",
    "hsctatracking",
    "igsh",
    "igshid",
    "irclickid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mc_tc",
    "mkt_tok",
    "ml_subscriber",
    "ml_subscriber_hash",
    "msclkid",
    "oly_anon_id",
    "oly_enc_id",
    "rb_clickid",
    "s_kwcid",
    "sb_referer_host",
    "srsltid",
    "ttclid",
    "twclid",
    "vero_conv",
    "vero_id",
    "wbraid",
    "wickedid",
    "wt_mc",
    "yclid",
    "ymclid",
    "ysclid",
];

/// Prefixes of the names of tracking parameters.
const PREFIXES: [&str; 7] = [
    "utm_",
    "mtm_",
    "pk_",
    "piwik_",
    "matomo_",
    "hsa_",
    "at_custom",
];

/// Returns whether a parameter with this name only tracks where a reader came from.
pub(super) fn is_tracking(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let begins = |prefix: &&str| lower.len() > prefix.len() && lower.starts_with(*prefix);
    NAMES.binary_search(&lower.as_str()).is_ok() || PREFIXES.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::{NAMES, is_tracking};

    #[test]
    fn the_table_is_sorted_without_duplicates() {
        assert!(NAMES.is_sorted_by(|one, next| one < next));
        assert!(NAMES.iter().all(|name| is_tracking(name)));
    }

    #[test]
    fn names_that_a_server_may_use_are_not_tracking() {
        for name in [
            "id", "page", "q", "ref", "source", "utm", "utm_", "pk", "s", "lang",
        ] {
            assert!(!is_tracking(name), "{name}");
        }
        for name in [
            "utm_source",
            "UTM_Medium",
            "fbclid",
            "gclid",
            "msclkid",
            "mc_eid",
            "pk_cid",
        ] {
            assert!(is_tracking(name), "{name}");
        }
    }
}
