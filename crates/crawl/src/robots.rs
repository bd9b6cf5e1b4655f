//! stub
use crate::args::RobotsArgs;
use crate::refusal::Refusal;
pub(crate) fn run(_args: &RobotsArgs) -> Result<u8, Refusal> {
    Ok(0)
}
