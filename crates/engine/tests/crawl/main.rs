//! Tests of whole crawls of a synthetic web on loopback. The web knows what a crawl must find, and
//! the results are compared with that.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails there")]

mod crash_suspects;
mod discovery_beyond_links;
mod failing_servers;
mod fetched_and_excluded;
mod host_secrets;
mod indexing;
mod misbehaviour;
#[expect(dead_code, reason = "the tests of the fetcher say more of a name")]
#[path = "../../../fetcher/tests/exchanges/scripted_name_server.rs"]
mod name_server;
mod page_consumer;
mod recrawl;
mod replay;
mod restart;
mod robots_txt_states;
mod running_crawl_control;
mod seed_name_resolution;
mod slow_documents;
mod support;
mod traps;
mod upgrade;
mod usage_preferences;
