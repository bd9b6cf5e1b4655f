//! Pages that send requests to host names with forbidden addresses.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use crawl_testweb::{HttpAnswer, TestWeb};
use tempfile::TempDir;

use super::{LONG_TIMEOUT, json, rows, run};

/// The address of the metadata service of cloud providers, which hands out credentials.
const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// Starts a name server on loopback that answers queries for IPv4 addresses by `address_of`.
/// Returns the server's address.
fn name_server(address_of: impl Fn(&str) -> Ipv4Addr + Send + 'static) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut query = [0; 1500];
        while let Ok((length, client)) = socket.recv_from(&mut query) {
            let Some(end) = query[12..length].iter().position(|byte| *byte == 0) else {
                continue;
            };
            let question = &query[12..12 + end + 5];
            // Each label of the name is preceded by its length.
            let name = question[1..end].iter().map(|byte| match byte {
                0..=31 => '.',
                byte => char::from(byte.to_ascii_lowercase()),
            });
            let name: String = name.collect();
            let is_ipv4 = question[end + 2] == 1;
            let mut answer = vec![query[0], query[1], 0x81, 0x80, 0, 1];
            answer.extend_from_slice(&[0, u8::from(is_ipv4), 0, 0, 0, 0]);
            answer.extend_from_slice(question);
            if is_ipv4 {
                // The record: a pointer to the name in the question, type A, class IN, a TTL of 0,
                // and a length of four bytes.
                answer.extend_from_slice(&[0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                answer.extend_from_slice(&address_of(&name).octets());
            }
            let _ = socket.send_to(&answer, client);
        }
    });
    address
}

fn address(web: &TestWeb, host: u32) -> Ipv4Addr {
    match web.address(host).ip() {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => panic!("{address}"),
    }
}

/// Starts a site whose first page fetches `/data` from the hosts `names` and shows the ones that
/// answered. Only the second host of the web has `/data`.
fn site(names: &[&str]) -> TestWeb {
    let web = TestWeb::scripted(2).start();
    let port = web.address(0).port();
    let fetches = names.iter().map(|name| {
        format!(
            "await fetch('http://{name}:{port}/data')
               .then(() => document.title += ' {name}').catch(() => {{}});"
        )
    });
    let fetches: String = fetches.collect();
    let page = format!(
        "<title>shown</title><script>(async () => {{ {fetches}
         document.title += ' done'; }})()</script>"
    );
    web.script(0, "/", HttpAnswer::html(&page));
    web.script(1, "/data", json("{}"));
    web
}

/// Crawls the site under the name `app.example`.
fn crawl(web: &TestWeb, name_server: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let seed = format!("http://app.example:{}/", web.address(0).port());
    let base = ["--seed", &seed, "--output", "out", "--delay", "200ms", "-q"];
    let contact = ["--contact", "bot@e.example"];
    let rendering = ["--render", "on", "--browser-sandbox", "off"];
    let names = ["--name-server", name_server];
    let args = [&base[..], &contact, &rendering, &LONG_TIMEOUT, &names].concat();
    run(folder.path(), &args);
    folder
}

/// Returns the URLs that were refused because of their addresses, and the pages that requested
/// them.
fn refused(web: &TestWeb, folder: &TempDir) -> Vec<String> {
    let port = format!(":{}", web.address(0).port());
    let rows = rows(folder, "excluded.jsonl").into_iter().map(|row| {
        assert_eq!(row["reason"], "address", "{row}");
        let text = format!("{} {}", row["url"], row["found_on"]);
        text.replace(&port, "").replace('"', "")
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

#[test]
fn names_with_forbidden_addresses_are_refused() {
    let web = site(&["inner.example", "metadata.example", "localhost"]);
    let (home, other) = (address(&web, 0), address(&web, 1));
    let names = name_server(move |name| match name {
        "inner.example" => other,
        "metadata.example" => METADATA,
        _ => home,
    });
    let folder = crawl(&web, &names);
    let pages = rows(&folder, "pages.jsonl");
    assert_eq!(pages[0]["title"], "shown done", "{pages:?}");
    assert_eq!(pages[0]["render"]["refused"], 3, "{pages:?}");
    assert_eq!(
        refused(&web, &folder),
        [
            "http://inner.example/data http://app.example/",
            "http://localhost/data http://app.example/",
            "http://metadata.example/data http://app.example/"
        ]
    );
    assert_eq!(web.log_of(1), []);
}
