//! The fastest pace that the settings allow for any host.

use super::setting_definitions::Settings;
use crate::values::DurationSetting;

/// Returns the shortest minimum delay and the highest number of requests in flight that the
/// settings allow for any host.
pub(crate) fn fastest_pace(settings: &Settings) -> (DurationSetting, u32) {
    let of_sites = settings.site.values().map(|site| &site.politeness);
    let of_groups = settings.group.values().map(|group| &group.politeness);
    let general = (settings.politeness.delay, settings.politeness.per_host);
    of_sites
        .chain(of_groups)
        .fold(general, |(delay, per_host), terms| {
            let own = terms.delay.filter(|own| own.get() < delay.get());
            let most = terms.per_host.unwrap_or(per_host).max(per_host);
            (own.unwrap_or(delay), most)
        })
}
