//! stub
use crate::args::{ExplainArgs, ReportArgs};
use crate::refusal::Refusal;
pub(crate) fn report(_args: &ReportArgs) -> Result<u8, Refusal> {
    Ok(0)
}
pub(crate) fn explain(_args: &ExplainArgs) -> Result<u8, Refusal> {
    Ok(0)
}
