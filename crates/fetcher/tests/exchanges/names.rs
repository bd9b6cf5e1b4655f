//! Names, asked of a name server on loopback.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawl_fetcher::{Failure, FetchConfig, Fetcher};
use crawl_weburl::{CanonicalUrl, canonicalize};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::support::{Server, fetch, fetcher};

/// What a name server says of a name.
#[derive(Clone, Debug)]
enum Said {
    /// These addresses, for so many seconds.
    Addresses(Vec<IpAddr>, u32),
    /// A response code (RFC 1035 section 4.1.1) and nothing else.
    Code(u8),
    /// Nothing at all.
    Silence,
}

/// A name server on loopback; stops when it is dropped.
struct NameServer {
    address: SocketAddr,
    /// Questions for A records: each name that is asked for is asked for once that way.
    questions: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NameServer {
    /// Answers each question with what `say` has for the name then.
    async fn start(say: impl Fn(&str) -> Said + Send + 'static) -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let questions = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&questions);
        let task = tokio::spawn(async move {
            let mut octets = [0; 512];
            while let Ok((length, peer)) = socket.recv_from(&mut octets).await {
                let (name, end) = question(&octets[..length]);
                let kind = octets[end - 3];
                if kind == 1 {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                if let Some(answer) = answer(&octets[..end], kind, &say(&name)) {
                    let _ = socket.send_to(&answer, peer).await;
                }
            }
        });
        NameServer {
            address,
            questions,
            task,
        }
    }

    fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

/// The name that is asked for, and where the question ends.
fn question(query: &[u8]) -> (String, usize) {
    let mut labels = Vec::new();
    let mut at = 12;
    while query[at] > 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8(query[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    (labels.join(".").to_lowercase(), at + 5)
}

/// A response to `query`, whose record type is `kind`: 1 for A, 28 for AAAA.
fn answer(query: &[u8], kind: u8, said: &Said) -> Option<Vec<u8>> {
    let (addresses, ttl, code): (&[IpAddr], u32, u8) = match said {
        Said::Addresses(addresses, ttl) => (addresses, *ttl, 0),
        Said::Code(code) => (&[], 0, *code),
        Said::Silence => return None,
    };
    let data = |address: &IpAddr| match address {
        IpAddr::V4(v4) if kind == 1 => Some(v4.octets().to_vec()),
        IpAddr::V6(v6) if kind == 28 => Some(v6.octets().to_vec()),
        _ => None,
    };
    let records: Vec<_> = addresses.iter().filter_map(data).collect();
    let mut octets = query.to_vec();
    octets[2] = 0x81;
    octets[3] = 0x80 | code;
    octets[6..12].copy_from_slice(&[0, u8::try_from(records.len()).unwrap(), 0, 0, 0, 0]);
    for record in records {
        octets.extend_from_slice(&[0xC0, 12, 0, kind, 0, 1]);
        octets.extend_from_slice(&ttl.to_be_bytes());
        octets.extend_from_slice(&[0, u8::try_from(record.len()).unwrap()]);
        octets.extend_from_slice(&record);
    }
    Some(octets)
}

fn asking(names: &NameServer) -> FetchConfig {
    FetchConfig {
        name_servers: vec![names.address],
        allow_private: true,
        connect_timeout: Duration::from_secs(1),
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
            crate::support::Act::Send(OK.into()),
            crate::support::Act::Close,
        ]
    })
    .await
}

#[tokio::test]
async fn a_name_is_asked_for_once_per_ttl() {
    let names =
        NameServer::start(|_| Said::Addresses(vec!["127.0.0.1".parse().unwrap()], 300)).await;
    let server = closing_server().await;
    let fetcher = fetcher(asking(&names));
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
async fn of_several_addresses_one_that_answers_serves() {
    let names = NameServer::start(|_| {
        let addresses = ["127.0.0.9", "::1", "127.0.0.1"];
        Said::Addresses(addresses.map(|a| a.parse().unwrap()).to_vec(), 300)
    })
    .await;
    let server = Server::answering(OK).await;
    let fetcher = fetcher(asking(&names));
    let exchange = fetch(&fetcher, &url("a.example", server.address.port())).await;
    assert_eq!(exchange.unwrap().address, Some(server.address));
}

async fn failure(fetcher: &Fetcher, host: &str) -> Failure {
    fetch(fetcher, &url(host, 9)).await.unwrap_err()
}

#[tokio::test]
async fn each_way_not_to_be_found_has_its_name() {
    let names = NameServer::start(|name| match name {
        "gone.example" => Said::Code(3),
        "empty.example" => Said::Addresses(Vec::new(), 0),
        "broken.example" => Said::Code(2),
        "refused.example" => Said::Code(5),
        _ => Said::Silence,
    })
    .await;
    let fetcher = fetcher(asking(&names));
    for (host, expect) in [
        (
            "gone.example",
            "no_such_name: there is no name gone.example",
        ),
        ("empty.example", "no_address: empty.example has no address"),
        ("broken.example", "dns_failed"),
        ("refused.example", "dns_failed"),
        ("silent.example", "dns_timeout"),
    ] {
        let failure = failure(&fetcher, host).await;
        assert!(failure.to_string().starts_with(expect), "{failure}");
        assert!(
            failure.kind.is_no_connection() && failure.retry,
            "{failure}"
        );
    }
    // What is not there is not asked for again at once.
    let asked = names.questions();
    failure(&fetcher, "gone.example").await;
    failure(&fetcher, "empty.example").await;
    assert_eq!(names.questions(), asked);
}

/// DNS rebinding: a name that leads elsewhere by the time it is asked for again.
#[tokio::test]
async fn each_answer_is_judged_anew() {
    let said = Arc::new(Mutex::new(Said::Code(2)));
    let names = NameServer::start({
        let said = Arc::clone(&said);
        move |_| said.lock().unwrap().clone()
    })
    .await;
    let server = closing_server().await;
    let port = server.address.port();
    let config = asking(&names);
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
        // Names with hyphens in front exist too.
        *said.lock().unwrap() = Said::Addresses(vec![home.parse().unwrap()], 300);
        let host = format!("{}.example", home.replace(['.', ':'], "-"));
        let failure = fetch(&fetcher, &url(&host, port)).await.unwrap_err();
        assert_eq!(failure.name(), "address_refused", "{failure}");
        assert!(!failure.retry);
    }
    assert_eq!(server.connections(), 0);
}
