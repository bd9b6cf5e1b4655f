//! Connections to the database server, and the thread that serves them.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crawl_frontier::FrontierError;
use crawl_frontier::worker_frontier::SharedFrontierError;
use futures_util::future::try_join_all;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::OnceCell;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Connection, Row, Socket, Statement};

use crate::connection_string::ConnectionString;
use crate::database_message_limits::MakeMessageCheckedConnect;
use crate::database_password::{PasswordSources, password};
use crate::error::SharedCrawlError;
use crate::sql_statements::SqlStatement;
use crate::tls::connector;

/// Maximum time for PostgreSQL to accept a connection and log the user in, unless the connection
/// string sets `connect_timeout`.
/// Beyond the limit: the next host is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum time that sent data may stay unacknowledged, unless the connection string sets
/// another time.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// The interval between keepalives, unless the connection string sets another one.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Settings that make the database server look up rows by key, which suits all our statements. By
/// default, the server would scan a whole new table for each commit, because it has no statistics
/// of the table yet.
const PLANS: &str =
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;";

/// The pause before another attempt to connect to the database server.
pub(crate) const RECONNECT_INTERVAL: Duration = Duration::from_millis(200);

/// A parameter of a statement.
pub(crate) type StatementParameter = Box<dyn ToSql + Sync + Send>;

/// The parameters of a statement, in order.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as crate::connection::StatementParameter),*]
    };
}
pub(crate) use params;

/// The parameters of a statement, in order.
pub(crate) type StatementParameterList<'a> = &'a [&'a (dyn ToSql + Sync)];
/// The result of a database operation, with the driver's error.
pub(crate) type DatabaseResult<T> = Result<T, tokio_postgres::Error>;

/// The configuration of connections to a database server.
#[derive(Clone)]
pub(crate) struct DatabaseServerConfig {
    /// The configurations of all hosts of the connection string, in order.
    hosts: Vec<Config>,
    guarded: MakeMessageCheckedConnect,
}

impl DatabaseServerConfig {
    pub(crate) fn new(
        url: &ConnectionString,
        credentials: &PasswordSources,
    ) -> Result<DatabaseServerConfig, SharedCrawlError> {
        let password = match url.has_password() {
            true => None,
            false => password(url, credentials)?,
        };
        let tls = connector(url.encryption())?;
        let is_plain = tls.is_none();
        let hosts = url.config_of_each_host().into_iter().map(|mut config| {
            if let Some(password) = &password {
                config.password(password.bytes());
            }
            DatabaseServerConfig::complete(&mut config, is_plain);
            config
        });
        Ok(DatabaseServerConfig {
            hosts: hosts.collect(),
            guarded: MakeMessageCheckedConnect {
                tls,
                allows_cleartext: url.allows_cleartext(),
            },
        })
    }

    /// Sets the options that the connection string does not set.
    fn complete(config: &mut Config, is_plain: bool) {
        if config.get_connect_timeout().is_none_or(Duration::is_zero) {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        // Without this timeout, we would wait for hours for a connection that a middlebox dropped.
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(MAX_SILENCE);
        }
        if config.get_keepalives_idle() > MAX_SILENCE {
            config.keepalives_idle(KEEPALIVE_INTERVAL);
        }
        if config.get_keepalives_interval().is_none() {
            config.keepalives_interval(KEEPALIVE_INTERVAL);
        }
        config.application_name("crawl");
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        if is_plain && !config.get_hosts().iter().any(is_socket) {
            // The driver uses `MakeMessageCheckedConnect`, which checks messages, only if TLS is required.
            // So require TLS here. `MakeMessageCheckedConnect` leaves the connection unencrypted anyway.
            config.ssl_mode(SslMode::Require);
            config.ssl_negotiation(SslNegotiation::Direct);
        }
    }

    /// Returns the maximum time to make a connection and to receive the first replies.
    pub(crate) fn time_limit(&self) -> Duration {
        let timeouts = self.hosts.iter().filter_map(Config::get_connect_timeout);
        timeouts.max().copied().unwrap_or(CONNECT_TIMEOUT)
    }
}

/// Waits for a database operation, but only up to a time limit.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = DatabaseResult<T>>,
) -> DatabaseResult<T> {
    let answered = tokio::time::timeout(limit, work).await;
    answered.unwrap_or_else(|_| Err(tokio_postgres::Error::__private_api_timeout()))
}

/// A connection with its prepared statements.
pub(crate) struct DatabaseSession {
    client: Client,
    statements: Vec<OnceCell<Statement>>,
}

/// The thread that serves all connections of a frontier.
///
/// Any thread may call its methods, even a thread of another async runtime. The call hands the work
/// over to this thread, and most methods block until the work is done.
pub(crate) struct DatabaseThread {
    /// The runtime; `None` once it was shut down.
    runtime: Option<Runtime>,
    /// The database server's address without a password, for messages.
    pub(crate) address: String,
}

impl DatabaseThread {
    pub(crate) fn start(address: String) -> std::io::Result<DatabaseThread> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("frontier")
            .enable_all()
            .build()?;
        Ok(DatabaseThread {
            runtime: Some(runtime),
            address,
        })
    }

    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }

    /// Runs work on the thread, and waits for the result.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = DatabaseResult<T>> + Send + 'static,
    ) -> Result<T, FrontierError> {
        self.try_run(work).map_err(|why| self.failed(why))
    }

    /// Like [`DatabaseThread::run`], but returns the database server's error. The error is `None`
    /// if the thread ended first.
    pub(crate) fn try_run<T: Send + 'static>(
        &self,
        work: impl Future<Output = DatabaseResult<T>> + Send + 'static,
    ) -> Result<T, Option<tokio_postgres::Error>> {
        self.spawn(work).answer()
    }

    /// Runs work on the thread. Returns without waiting for the result.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = DatabaseResult<T>> + Send + 'static,
    ) -> PendingDatabaseResult<T> {
        let (answer, receiver) = mpsc::channel();
        if let Some(handle) = self.handle() {
            handle.spawn(async move {
                // Sending fails only if the caller no longer waits for the result, so the error can
                // be ignored.
                let _ = answer.send(work.await);
            });
        }
        PendingDatabaseResult(receiver)
    }

    pub(crate) fn failed(&self, why: Option<tokio_postgres::Error>) -> FrontierError {
        let address = self.address.clone();
        let source = match why {
            Some(why) => why.into(),
            None => "its connection was closed".into(),
        };
        FrontierError::Shared(SharedFrontierError::DatabaseServer { address, source })
    }

    pub(crate) fn corrupt(&self, what: &str) -> FrontierError {
        FrontierError::Corrupt {
            dir: self.address.clone().into(),
            what: what.to_owned(),
        }
    }
}

/// Work that was handed over to the thread. [`PendingDatabaseResult::answer`] waits for its result.
pub(crate) struct PendingDatabaseResult<T>(mpsc::Receiver<DatabaseResult<T>>);

impl<T> PendingDatabaseResult<T> {
    /// Waits for the result. The error is `None` if the thread ended before the work did.
    pub(crate) fn answer(self) -> Result<T, Option<tokio_postgres::Error>> {
        match self.0.recv() {
            Ok(answered) => answered.map_err(Some),
            Err(_) => Err(None),
        }
    }
}

impl Drop for DatabaseThread {
    fn drop(&mut self) {
        // The frontier may be dropped on a thread of another async runtime, and such a thread must
        // not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Connects to the first host that responds in time. A task then serves the connection until it is
/// closed.
pub(crate) async fn connect(config: &DatabaseServerConfig) -> DatabaseResult<Client> {
    let mut failed = None;
    for host in &config.hosts {
        let limit = host.get_connect_timeout().copied();
        let limit = limit.unwrap_or(CONNECT_TIMEOUT);
        match within(limit, host.connect(config.guarded.clone())).await {
            Ok((client, connection)) => {
                serve(connection);
                return Ok(client);
            }
            Err(why) => failed = Some(why),
        }
    }
    Err(failed.unwrap_or_else(tokio_postgres::Error::__private_api_timeout))
}

/// Connects, and sets [`PLANS`] so that the database server finds rows by key.
pub(crate) async fn connect_for_rows(config: &DatabaseServerConfig) -> DatabaseResult<Client> {
    let client = connect(config).await?;
    client.batch_execute(PLANS).await?;
    Ok(client)
}

fn serve<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(connection: Connection<Socket, T>) {
    tokio::spawn(async move {
        if let Err(why) = connection.await {
            tracing::debug!(error = %why, "a connection to the frontier ended");
        }
    });
}

impl DatabaseSession {
    /// Connects and prepares all statements.
    pub(crate) async fn open(
        config: &DatabaseServerConfig,
    ) -> DatabaseResult<Arc<DatabaseSession>> {
        let session = DatabaseSession::open_lazily(config).await?;
        // Send all statements without waiting in between, so that they share one round trip.
        let client = &session.client;
        let statements = SqlStatement::TEXTS.iter().map(|text| client.prepare(text));
        let prepared = try_join_all(statements).await?;
        for (statement, prepared) in session.statements.iter().zip(prepared) {
            // `set` can't fail, because no other caller has this session yet.
            let _ = statement.set(prepared);
        }
        Ok(session)
    }

    /// Connects. Each statement is prepared when it is first used.
    pub(crate) async fn open_lazily(
        config: &DatabaseServerConfig,
    ) -> DatabaseResult<Arc<DatabaseSession>> {
        let client = connect_for_rows(config).await?;
        let statements = SqlStatement::TEXTS
            .iter()
            .map(|_| OnceCell::new())
            .collect();
        Ok(Arc::new(DatabaseSession { client, statements }))
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) async fn query(
        &self,
        sql: SqlStatement,
        params: StatementParameterList<'_>,
    ) -> DatabaseResult<Vec<Row>> {
        self.client.query(self.prepared(sql).await?, params).await
    }

    pub(crate) async fn execute(
        &self,
        sql: SqlStatement,
        params: StatementParameterList<'_>,
    ) -> DatabaseResult<u64> {
        self.client.execute(self.prepared(sql).await?, params).await
    }

    /// Returns a prepared statement, and prepares it if necessary. A caller that sends several
    /// statements at once must prepare all of them beforehand, so that they are sent in order: a
    /// statement that still has to be prepared is sent later.
    pub(crate) async fn prepared(&self, sql: SqlStatement) -> DatabaseResult<&Statement> {
        let at = sql as usize;
        let prepare = || self.client.prepare(SqlStatement::TEXTS[at]);
        self.statements[at].get_or_try_init(prepare).await
    }
}

/// Returns whether the connection broke or the database server is shutting down. In both cases, it
/// is unknown whether the request took effect.
pub(crate) fn is_cut(why: Option<&tokio_postgres::Error>) -> bool {
    let Some(why) = why else { return true };
    match why.code() {
        // Class 57P: the database server is shutting down or closing connections.
        Some(code) => code.code().starts_with("57P"),
        // Only errors of the connection itself count. Any other error would occur again over a new
        // connection.
        None => why.is_closed() || why.source().is_some_and(<dyn Error>::is::<std::io::Error>),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::Duration;

    use super::{DatabaseServerConfig, connect};
    use crate::connection_string::ConnectionString;
    use crate::database_password::PasswordSources;

    /// Handles connections with `phase` on a loopback port until the test ends.
    fn server(phase: fn(TcpStream)) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for taken in listener.incoming().flatten() {
                thread::spawn(move || phase(taken));
            }
        });
        port
    }

    /// Reads until the other side closes.
    fn stay_silent(mut taken: TcpStream) {
        let _ = std::io::copy(&mut taken, &mut std::io::sink());
    }

    fn answer(mut taken: TcpStream, answer: &[u8]) {
        let mut startup = [0; 512];
        let _ = taken.read(&mut startup);
        let _ = taken.write_all(answer);
        stay_silent(taken);
    }

    const OK: &[u8] = &[b'R', 0, 0, 0, 8, 0, 0, 0, 0];
    const READY: &[u8] = &[b'Z', 0, 0, 0, 5, b'I'];

    fn outcome(ports: &[u16], parameters: &str) -> Result<(), String> {
        let hosts: Vec<_> = ports
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        let url = format!("postgres://me:secret@{}/crawl{parameters}", hosts.join(","));
        let url = ConnectionString::parse(&url).unwrap();
        let mut config = DatabaseServerConfig::new(&url, &PasswordSources::default()).unwrap();
        for (number, host) in config.hosts.iter_mut().enumerate() {
            // The silent host gets a short time limit. The responsive hosts get a long one, because
            // the machine may be loaded.
            let is_silent = number == 0 && parameters.contains("first_is_silent");
            host.connect_timeout(match is_silent {
                true => Duration::from_millis(100),
                false => Duration::from_secs(120),
            });
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let connected = runtime.block_on(connect(&config));
        connected
            .map(drop)
            .map_err(|why| match std::error::Error::source(&why) {
                Some(source) => format!("{why}: {source}"),
                None => why.to_string(),
            })
    }

    #[test]
    fn a_host_that_stays_silent_is_given_up_and_the_next_is_tried() {
        let lets_in = server(|taken| answer(taken, &[OK, READY].concat()));
        for silent in [
            server(stay_silent),
            // The second server is silent after the login, and the third in the middle of a
            // message.
            server(|taken| answer(taken, OK)),
            server(|taken| answer(taken, &OK[..6])),
        ] {
            let silent_first = "?application_name=first_is_silent";
            assert_eq!(outcome(&[silent, lets_in], silent_first), Ok(()));
            assert!(
                outcome(&[silent], silent_first)
                    .unwrap_err()
                    .contains("timeout")
            );
        }
    }

    #[test]
    fn long_messages_and_cleartext_passwords_are_refused() {
        let long = server(|taken| answer(taken, &[b'S', 0x7f, 0xff, 0xff, 0xff, 0]));
        let refused = outcome(&[long], "").unwrap_err();
        assert!(refused.contains("2147483647 bytes"), "{refused}");
        let cleartext = server(|taken| answer(taken, &[b'R', 0, 0, 0, 8, 0, 0, 0, 3]));
        let refused = outcome(&[cleartext], "").unwrap_err();
        assert!(refused.contains("clear text"), "{refused}");
        let lets_in = server(|mut taken| {
            let mut sent = [0; 512];
            let _ = taken.read(&mut sent);
            let _ = taken.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]);
            let length = taken.read(&mut sent).unwrap_or(0);
            if sent[..length].ends_with(b"secret\0") {
                let _ = taken.write_all(&[OK, READY].concat());
            }
            stay_silent(taken);
        });
        assert_eq!(outcome(&[lets_in], "?require_auth=password"), Ok(()));
    }
}
