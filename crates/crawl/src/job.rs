//! stub
use crate::refusal::Refusal;
use crate::screen::{Screen, closing, exit_code, show, start_log};
use crate::settings::{Settings, check};
use crate::signals;
use tokio::sync::watch;
pub(crate) fn run(settings: &Settings) -> Result<u8, Refusal> {
    let _checked = check(settings)?;
    let screen = Screen::new(settings);
    start_log(settings, &screen)?;
    let (s, _r) = watch::channel(crawl_engine::Stop::No);
    signals::listen(s, screen.clone())?;
    let (_a, b) = watch::channel(crawl_engine::Progress::default());
    drop(show(screen, b));
    let _ = (closing, exit_code);
    Ok(0)
}
