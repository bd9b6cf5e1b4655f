//! stub
use crate::args::InspectArgs;
use crate::refusal::Refusal;
pub(crate) fn run(_args: &InspectArgs) -> Result<u8, Refusal> {
    Ok(0)
}
