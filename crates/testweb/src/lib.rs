//! A seeded, misbehaving web on loopback with a request log, for testing crawlers.
//!
//! A [`TestWeb`] has any number of hosts, each on its own address in 127.0.0.0/8. Its pages are
//! computed from a seed on request, so a web of a million pages takes no memory. [`TestWeb::truth`]
//! returns what a crawl must find: the URLs to fetch, and the URLs that are excluded, with the
//! reasons. A [`ReplySequence`] replaces the replies for a path: with other answers, late answers,
//! a sequence of answers, or bytes that are not HTTP at all. [`TestWeb::log`] contains every
//! request with its times, on a scale that is unaffected by clock changes.
//!
//! The web never opens a connection, never listens outside of loopback, and depends on no other
//! crate of the crawler, so its behaviour follows from the standards alone.
//!
//! ```
//! use std::io::{Read, Write};
//! use crawl_testweb::{HttpAnswer, HostsInScope, TestWeb};
//!
//! let web = TestWeb::builder().seed(7).hosts(2).pages(30)
//!     .script(0, "/busy", HttpAnswer::of(503).header("retry-after", "1"))
//!     .start();
//!
//! let mut stream = std::net::TcpStream::connect(web.address(0))?;
//! stream.write_all(b"GET /busy HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 503 "));
//!
//! assert_eq!(web.log()[0].path, "/busy");
//! assert!(web.truth(HostsInScope::Host).fetched.len() >= 30);
//! # Ok::<(), std::io::Error>(())
//! ```

mod ground_truth;
mod link_spellings;
mod misbehaviour;
mod nginx;
mod random;
mod reply_sender;
mod request_log;
mod request_reader;
mod scripted_reply;
mod server;
mod sockets;
mod synthetic_web;
mod test_web;
mod test_web_builder;
mod trap_web;
mod web_plan;

pub use ground_truth::{ExclusionReason, ExpectedAnswer, GroundTruth, HostsInScope};
pub use misbehaviour::{Misbehaviour, misbehaviours};
pub use nginx::{Nginx, NginxEndpoint, NginxLogDestination, NginxSpec};
pub use request_log::{LogEntry, gaps};
pub use request_reader::ReceivedRequest;
pub use scripted_reply::{HttpAnswer, RawReplyStep, ReplySequence, ScriptedReply};
pub use test_web::TestWeb;
pub use test_web_builder::{ConnectionBehaviour, TestWebBuilder};
pub use trap_web::{TRAPS, TrapWeb};
pub use web_plan::LinkMix;
