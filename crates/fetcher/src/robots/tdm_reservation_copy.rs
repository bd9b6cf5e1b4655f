//! The file of the TDM Reservation Protocol, fetched along with a robots.txt.

use bytes::Bytes;
use crawl_policy::RobotsStatus;

use crate::exchange::Exchange;
use crate::failure::ExchangeFailure;
use crate::robots::fetch_result::decoded;

/// The path of the file on its origin (TDM Reservation Protocol, section 6).
pub const TDMREP_PATH: &str = "/.well-known/tdmrep.json";

/// The copy of an origin's `/.well-known/tdmrep.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TdmReservationCopy {
    /// Not fetched.
    #[default]
    NotAsked,
    /// The file does not exist, or its answer could not be used.
    None,
    /// The file, decoded.
    File(Bytes),
}

impl TdmReservationCopy {
    /// Interprets the result of a request for the file. `None` if the request may succeed at
    /// another time: a status that makes a robots.txt unreachable, no answer, or a demand for a
    /// signed request.
    #[must_use]
    pub fn of(result: &Result<Exchange, ExchangeFailure>) -> Option<TdmReservationCopy> {
        let exchange = result.as_ref().ok()?;
        match RobotsStatus::of(exchange.status) {
            _ if exchange.challenged => None,
            RobotsStatus::Successful => {
                Some(decoded(exchange).map_or(TdmReservationCopy::None, TdmReservationCopy::File))
            }
            RobotsStatus::Unreachable => None,
            RobotsStatus::Redirect | RobotsStatus::Unavailable => Some(TdmReservationCopy::None),
        }
    }
}
