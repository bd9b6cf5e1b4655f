//! A name server on loopback with scripted answers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// The answer of a name server for a name.
#[derive(Clone, Debug)]
pub(crate) enum ScriptedAnswer {
    /// The name has these addresses, with a TTL in seconds.
    Addresses(Vec<IpAddr>, u32),
    /// A response code (RFC 1035 section 4.1.1) and nothing else.
    Code(u8),
    /// No answer.
    Silence,
}

/// A name server on loopback; stops when it is dropped.
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    /// Number of A queries. Each look-up sends exactly one.
    questions: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NameServer {
    /// Answers each question with the current result of `answer_for` for the name.
    pub(crate) async fn start(
        answer_for: impl Fn(&str) -> ScriptedAnswer + Send + 'static,
    ) -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let questions = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&questions);
        let task = tokio::spawn(async move {
            let mut bytes = [0; 512];
            while let Ok((length, peer)) = socket.recv_from(&mut bytes).await {
                let (name, end) = question(&bytes[..length]);
                let kind = bytes[end - 3];
                if kind == 1 {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                if let Some(answer) = answer(&bytes[..end], kind, &answer_for(&name)) {
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

    pub(crate) fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

/// Returns the name in the question, and where the question ends.
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

/// Builds a response to `query` for record type `kind`: 1 for A, 28 for AAAA.
fn answer(query: &[u8], kind: u8, scripted: &ScriptedAnswer) -> Option<Vec<u8>> {
    let (addresses, ttl, code): (&[IpAddr], u32, u8) = match scripted {
        ScriptedAnswer::Addresses(addresses, ttl) => (addresses, *ttl, 0),
        ScriptedAnswer::Code(code) => (&[], 0, *code),
        ScriptedAnswer::Silence => return None,
    };
    let data = |address: &IpAddr| match address {
        IpAddr::V4(v4) if kind == 1 => Some(v4.octets().to_vec()),
        IpAddr::V6(v6) if kind == 28 => Some(v6.octets().to_vec()),
        _ => None,
    };
    let records: Vec<_> = addresses.iter().filter_map(data).collect();
    let mut bytes = query.to_vec();
    bytes[2] = 0x81;
    bytes[3] = 0x80 | code;
    bytes[6..12].copy_from_slice(&[0, u8::try_from(records.len()).unwrap(), 0, 0, 0, 0]);
    for record in records {
        bytes.extend_from_slice(&[0xC0, 12, 0, kind, 0, 1]);
        bytes.extend_from_slice(&ttl.to_be_bytes());
        bytes.extend_from_slice(&[0, u8::try_from(record.len()).unwrap()]);
        bytes.extend_from_slice(&record);
    }
    Some(bytes)
}
