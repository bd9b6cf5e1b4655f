//! Tests of the addresses that a seed's host name resolves to.

use std::io::Write as _;
use std::net::TcpListener;

use crawl_archive::rows::RequestRow;
use crawl_testweb::{HttpAnswer, TestWeb};
use crawl_weburl::canonicalize;
use tokio::runtime::Runtime;

use crate::name_server::{NameServer, ScriptedAnswer};
use crate::support::Crawl;

/// Returns a crawl of `http://seed.example/` at the port of host 0. A name server resolves every
/// name to the address of host 0.
fn crawl_of(web: &TestWeb, runtime: &Runtime) -> (Crawl, NameServer) {
    let address = web.address(0);
    let home = move |_: &str| ScriptedAnswer::Addresses(vec![address.ip()], 300);
    let names = runtime.block_on(NameServer::start(home));
    let mut crawl = Crawl::of(web);
    let seed = format!("http://seed.example:{}/", address.port());
    let seed = canonicalize(None, &seed).unwrap();
    crawl.config.fetch.typed = vec![seed.clone()];
    crawl.config.fetch.name_servers = vec![names.address];
    crawl.config.seeds = vec![seed];
    (crawl, names)
}

#[test]
fn the_name_of_a_seed_opens_no_other_port() {
    let runtime = Runtime::new().unwrap();
    let web = TestWeb::builder().start();
    // Another service on the same machine, which must get no request.
    let service = TcpListener::bind((web.address(0).ip(), 0)).unwrap();
    service.set_nonblocking(true).unwrap();
    let link = format!(
        "http://seed.example:{}/keys",
        service.local_addr().unwrap().port()
    );
    web.script(
        0,
        "/",
        HttpAnswer::html(&format!("<a href={link}>keys</a>")),
    );
    let (crawl, _names) = crawl_of(&web, &runtime);
    crawl.run().unwrap();
    let row = crawl.excluded_row(&link);
    assert_eq!(row.reason, "address");
    let error = service.accept().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

/// The test appends a row to the log of the first run, in which the name has a public address. The
/// second run reads this log.
#[test]
fn a_seed_that_was_public_before_may_not_become_private() {
    let runtime = Runtime::new().unwrap();
    let web = TestWeb::builder().start();
    let links = "<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>";
    web.script(0, "/", HttpAnswer::html(links));
    let (mut crawl, _names) = crawl_of(&web, &runtime);
    crawl.config.budgets.max_pages = Some(2);
    assert_eq!(crawl.run().unwrap().pages, 2);
    let mut row: RequestRow = crawl.requests().pop().unwrap();
    row.address = Some("93.184.215.14".to_owned());
    let log = std::fs::OpenOptions::new()
        .append(true)
        .open(crawl.output("requests.jsonl"));
    let line = serde_json::to_string(&row).unwrap();
    writeln!(log.unwrap(), "{line}").unwrap();
    web.take_log();
    crawl.config.budgets.max_pages = None;
    crawl.run().unwrap();
    assert_eq!(web.log(), []);
}
