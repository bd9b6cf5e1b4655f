//! A thread that wakes the runtime periodically, so that a busy connection does not block timers.
//!
//! One thread of the runtime waits for sockets and timers, and also runs the tasks that these wake.
//! Until such a task yields, no thread waits for sockets and timers. A server that floods its
//! connection can keep a task busy for seconds. But a task spawned from outside the runtime wakes
//! an idle thread, which then waits for sockets and timers instead.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;

/// The maximum time without a check of sockets and timers, as long as the runtime has an idle
/// thread.
const WAKE_INTERVAL: Duration = Duration::from_millis(100);

/// The thread that wakes the runtime periodically. Dropping this value ends the thread.
#[derive(Debug)]
pub(crate) struct RuntimeWaker {
    #[expect(dead_code, reason = "held only to be dropped")]
    is_wanted: mpsc::Sender<()>,
}

impl RuntimeWaker {
    pub(crate) fn start(runtime: Handle) -> io::Result<RuntimeWaker> {
        let (is_wanted, end) = mpsc::channel();
        let wake = move || {
            while end.recv_timeout(WAKE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                runtime.spawn(async {});
            }
        };
        let thread = thread::Builder::new().name("crawl-waker".to_owned());
        thread.spawn(wake)?;
        Ok(RuntimeWaker { is_wanted })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::runtime::{Builder, Handle};

    use super::RuntimeWaker;

    #[test]
    fn a_task_that_never_yields_does_not_block_timers() {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let _waker = RuntimeWaker::start(Handle::current()).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut server = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (client, _) = listener.accept().unwrap();
            client.set_nonblocking(true).unwrap();
            let client = tokio::net::TcpStream::from_std(client).unwrap();
            let (begin, begun) = mpsc::channel();
            let (end, ended) = mpsc::channel::<()>();
            // This task keeps its thread busy until a timer has fired, or for at most 60 seconds.
            let flooded = tokio::spawn(async move {
                client.readable().await.unwrap();
                begin.send(()).unwrap();
                ended.recv_timeout(Duration::from_secs(60))
            });
            server.write_all(b"x").unwrap();
            begun.recv().unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
            end.send(()).unwrap();
            assert_eq!(flooded.await.unwrap(), Ok(()));
        });
    }
}
