//! Replaces the cookie jar of `cookie_jar.rs` in a build without the feature `logins`, which keeps
//! no cookies.

use crawl_scheduler::Tick;
use crawl_weburl::CanonicalUrl;
use strum::IntoStaticStr;

use super::stored_cookie::StoredCookie;

/// A jar that stays empty.
#[derive(Default)]
pub(crate) struct CookieJar;

/// Why a cookie from a response is not kept.
#[derive(Clone, Copy, Debug, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum CookieRefusal {
    Malformed,
}

impl CookieJar {
    pub(crate) fn receive(
        &mut self,
        _: &CanonicalUrl,
        _: &str,
        _: Tick,
    ) -> Result<(), CookieRefusal> {
        Ok(())
    }

    pub(crate) fn field(&self, _: &CanonicalUrl, _: Tick) -> Option<String> {
        None
    }

    pub(crate) fn add(&mut self, _: &StoredCookie, _: Tick) -> bool {
        false
    }

    pub(crate) fn stored(&self) -> Vec<StoredCookie> {
        Vec::new()
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }

    pub(crate) fn clear(&mut self) {}
}

pub(super) fn utc(now: Tick) -> Tick {
    now
}
