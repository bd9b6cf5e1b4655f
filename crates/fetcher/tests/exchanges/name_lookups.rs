//! Tests of look-ups of names by a name server on loopback.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawl_fetcher::{ExchangeFailure, FetchConfig, Fetcher};
use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::scripted_name_server::{NameServer, ScriptedAnswer};
use crate::scripted_server::{Server, fetch, fetcher};

fn using(names: &NameServer) -> FetchConfig {
    FetchConfig {
        name_servers: vec![names.address],
        allow_private: true,
        connect_timeout: Duration::from_mins(1),
        ..FetchConfig::new("crawl/0.1")
    }
}

fn url(host: &str, port: u16) -> CanonicalUrl {
    canonicalize(None, &format!("http://{host}:{port}/")).unwrap()
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

async fn closing_server() -> Server {
    Server::start(|_| {
        vec![
            crate::scripted_server::Act::Send(OK.into()),
            crate::scripted_server::Act::Close,
        ]
    })
    .await
}

#[tokio::test]
async fn a_name_is_looked_up_once_per_ttl() {
    let names =
        NameServer::start(|_| ScriptedAnswer::Addresses(vec!["127.0.0.1".parse().unwrap()], 300))
            .await;
    let server = closing_server().await;
    let fetcher = fetcher(using(&names));
    let port = server.address.port();
    for host in ["a.example", "a.example.", "A.example"] {
        let exchange = fetch(&fetcher, &url(host, port)).await.unwrap();
        assert_eq!(exchange.address, Some(server.address));
    }
    assert_eq!((server.connections(), names.questions()), (3, 1));
    fetch(&fetcher, &url("b.example", port)).await.unwrap();
    assert_eq!(names.questions(), 2);
}

#[tokio::test]
async fn an_address_that_answers_is_used_out_of_several() {
    let names = NameServer::start(|_| {
        let addresses = ["127.0.0.9", "::1", "127.0.0.1"];
        ScriptedAnswer::Addresses(addresses.map(|a| a.parse().unwrap()).to_vec(), 300)
    })
    .await;
    let server = Server::answering(OK).await;
    let fetcher = fetcher(using(&names));
    let exchange = fetch(&fetcher, &url("a.example", server.address.port())).await;
    assert_eq!(exchange.unwrap().address, Some(server.address));
}

async fn failure(fetcher: &Fetcher, host: &str) -> ExchangeFailure {
    fetch(fetcher, &url(host, 9)).await.unwrap_err()
}

#[tokio::test]
async fn each_look_up_failure_has_its_name() {
    let names = NameServer::start(|name| match name {
        "gone.example" => ScriptedAnswer::Code(3),
        "empty.example" => ScriptedAnswer::Addresses(Vec::new(), 0),
        "broken.example" => ScriptedAnswer::Code(2),
        "refused.example" => ScriptedAnswer::Code(5),
        _ => ScriptedAnswer::Silence,
    })
    .await;
    let fetcher = fetcher(using(&names));
    for (host, expect) in [
        (
            "gone.example",
            "no_such_name: can't find host gone.example (DNS)",
        ),
        ("empty.example", "no_address: empty.example has no address"),
        ("broken.example", "dns_failed"),
        ("refused.example", "dns_failed"),
    ] {
        not_found(failure(&fetcher, host).await, expect);
    }
    // A nonexistent name is not looked up again right away.
    let questions = names.questions();
    failure(&fetcher, "gone.example").await;
    failure(&fetcher, "empty.example").await;
    assert_eq!(names.questions(), questions);
    let hurried = crate::scripted_server::fetcher(FetchConfig {
        connect_timeout: Duration::from_secs(1),
        ..using(&names)
    });
    not_found(failure(&hurried, "silent.example").await, "dns_timeout");
}

#[expect(clippy::needless_pass_by_value, reason = "a failure is looked at once")]
fn not_found(failure: ExchangeFailure, expect: &str) {
    assert!(failure.to_string().starts_with(expect), "{failure}");
    assert!(
        failure.kind.is_no_connection() && failure.retry,
        "{failure}"
    );
}

/// DNS rebinding: a name has another address when it is looked up again.
#[tokio::test]
async fn each_new_answer_is_judged() {
    let scripted = Arc::new(Mutex::new(ScriptedAnswer::Code(2)));
    let names = NameServer::start({
        let scripted = Arc::clone(&scripted);
        move |_| scripted.lock().unwrap().clone()
    })
    .await;
    let server = closing_server().await;
    let port = server.address.port();
    let config = using(&names);
    let fetcher = fetcher(FetchConfig {
        allow_private: false,
        ..config
    });
    for home in [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
        "10.0.0.1",
        "169.254.169.254",
        "fd00:ec2::254",
        "100.64.0.1",
        "224.0.0.1",
        "0.0.0.0",
    ] {
        // Names with a leading hyphen exist too.
        *scripted.lock().unwrap() = ScriptedAnswer::Addresses(vec![home.parse().unwrap()], 300);
        let host = format!("{}.example", home.replace(['.', ':'], "-"));
        let failure = fetch(&fetcher, &url(&host, port)).await.unwrap_err();
        assert_eq!(failure.name(), "address_refused", "{failure}");
        assert!(!failure.retry);
    }
    assert_eq!(server.connections(), 0);
}

/// A typed name allows private addresses, but only on its port, and only until it has had a public
/// address.
#[tokio::test]
async fn a_typed_name_opens_its_own_port_until_it_is_public() {
    let home = || ScriptedAnswer::Addresses(vec!["127.0.0.1".parse().unwrap()], 300);
    let names = NameServer::start(move |name| match name {
        // The answer has a public and a private address, so the name counts as public.
        "both.example" => {
            let addresses = ["93.184.215.14", "127.0.0.1"];
            ScriptedAnswer::Addresses(addresses.map(|a| a.parse().unwrap()).to_vec(), 300)
        }
        _ => home(),
    })
    .await;
    let (server, other) = (closing_server().await, closing_server().await);
    let port = server.address.port();
    let seed = url("seed.example", port);
    let fetcher = fetcher(FetchConfig {
        allow_private: false,
        allow_public: false,
        typed: vec![seed.clone(), url("both.example", port)],
        ..using(&names)
    });
    fetch(&fetcher, &seed).await.unwrap();
    let robots = canonicalize(Some(&seed), "/robots.txt").unwrap();
    fetch(&fetcher, &robots).await.unwrap();
    for refused in [
        url("seed.example", other.address.port()),
        url("met.example", port),
        url("both.example", port),
    ] {
        let failure = fetch(&fetcher, &refused).await.unwrap_err();
        assert_eq!(failure.name(), "address_refused", "{refused}: {failure}");
    }
    assert_eq!((server.connections(), other.connections()), (2, 0));
    // An earlier run found a public address for the name.
    fetcher.note_past_address("seed.example", "93.184.215.14".parse().unwrap());
    let failure = fetch(&fetcher, &seed).await.unwrap_err();
    let expect = "address_refused: seed.example is at 127.0.0.1, an address of this machine, and \
                  had a public address before";
    assert_eq!(failure.to_string(), expect);
}
