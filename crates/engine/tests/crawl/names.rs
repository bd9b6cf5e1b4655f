//! Where the name of a seed leads.

use std::io::Write as _;

use crawl_archive::rows::RequestRow;
use crawl_testweb::{Answer, TestWeb};
use crawl_weburl::canonicalize;
use tokio::runtime::Runtime;

use crate::name_server::{NameServer, Said};
use crate::support::Crawl;

/// A crawl from `http://seed.example/` at the port of host 0, asking a name server for which
/// all names are at this machine.
fn crawl_of(web: &TestWeb, runtime: &Runtime) -> (Crawl, NameServer) {
    let home = |_: &str| Said::Addresses(vec!["127.0.0.1".parse().unwrap()], 300);
    let names = runtime.block_on(NameServer::start(home));
    let mut crawl = Crawl::of(web);
    let seed = canonicalize(None, &named(web, 0, "/")).unwrap();
    crawl.config.fetch.typed = vec![seed.clone()];
    crawl.config.fetch.name_servers = vec![names.address];
    crawl.config.seeds = vec![seed];
    (crawl, names)
}

fn named(web: &TestWeb, host: u32, path: &str) -> String {
    let port = web.address(host).port();
    format!("http://seed.example:{port}{path}")
}

#[test]
fn ours_the_name_of_a_seed_opens_no_other_port() {
    let runtime = Runtime::new().unwrap();
    let web = TestWeb::builder().hosts(2).start();
    let links = format!("<a href={}>keys</a>", named(&web, 1, "/keys"));
    web.script(0, "/", Answer::html(&links));
    let (crawl, _names) = crawl_of(&web, &runtime);
    crawl.run().unwrap();
    assert_eq!(web.log_of(1), []);
    let row = crawl.excluded_row(&named(&web, 1, "/keys"));
    assert_eq!(row.reason, "address");
}

/// The state is as the earlier run left it; its log tells where the name was.
#[test]
fn ours_a_seed_that_an_earlier_run_found_public_leads_home_no_more() {
    let runtime = Runtime::new().unwrap();
    let web = TestWeb::builder().pages(10).start();
    let (mut crawl, _names) = crawl_of(&web, &runtime);
    crawl.config.budgets.max_pages = Some(2);
    crawl.run().unwrap();
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
