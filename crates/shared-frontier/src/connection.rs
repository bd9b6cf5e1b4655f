//! Connections to the engine, and the thread that serves them.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use crawl_frontier::FrontierError;
use futures_util::future::try_join_all;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::OnceCell;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Connection, NoTls, Row, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connection_string::ConnectionString;
use crate::credentials::{Credentials, password};
use crate::error::OpenError;
use crate::sql::Sql;
use crate::tls::connector;

/// How long the engine may take to answer a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long what was sent may stay without a sign that it arrived, and the pause between two
/// questions whether the engine's machine is there, unless the connection string says otherwise.
const MAX_SILENCE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// All statements find rows by their keys. While a table is new the engine knows nothing of it, and
/// would read all of it for each commit.
const PLANS: &str =
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;";

/// The pause before the engine is asked for a connection again.
pub(crate) const RECONNECT_INTERVAL: Duration = Duration::from_millis(200);

/// A value that a statement is given.
pub(crate) type Param = Box<dyn ToSql + Sync + Send>;

/// The values of a statement, in the order of their numbers.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as crate::connection::Param),*]
    };
}
pub(crate) use params;

pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];
pub(crate) type Answer<T> = Result<T, tokio_postgres::Error>;

/// How connections to an engine are made.
#[derive(Clone)]
pub(crate) struct EngineConfig {
    config: Config,
    /// None where they are not encrypted.
    tls: Option<MakeRustlsConnect>,
}

impl EngineConfig {
    pub(crate) fn new(
        url: &ConnectionString,
        credentials: &Credentials,
    ) -> Result<EngineConfig, OpenError> {
        let mut config = url.config().clone();
        if !url.has_password()
            && let Some(password) = password(url, credentials)?
        {
            config.password(password.bytes());
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        // Without these a connection that a machine on the way forgot is waited for, for hours.
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
        let tls = connector(url.encryption())?;
        Ok(EngineConfig { config, tls })
    }
}

/// A connection, with its statements.
pub(crate) struct Session {
    client: Client,
    statements: Vec<OnceCell<Statement>>,
}

/// The thread that all connections of a frontier are served by.
///
/// Callers are threads of any kind, those of another runtime among them, so they hand their work
/// over and wait for the answer.
pub(crate) struct EngineThread {
    /// None once it is dropped.
    runtime: Option<Runtime>,
    /// The engine, without a password, as messages name it.
    pub(crate) address: String,
}

impl EngineThread {
    pub(crate) fn start(address: String) -> std::io::Result<EngineThread> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("frontier")
            .enable_all()
            .build()?;
        Ok(EngineThread {
            runtime: Some(runtime),
            address,
        })
    }

    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }

    /// Has the thread do some work, and waits for the answer.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Answer<T>> + Send + 'static,
    ) -> Result<T, FrontierError> {
        self.try_run(work).map_err(|why| self.failed(why))
    }

    /// As [`EngineThread::run`]; none where the thread ended before it answered.
    pub(crate) fn try_run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Answer<T>> + Send + 'static,
    ) -> Result<T, Option<tokio_postgres::Error>> {
        self.ask(work).answer()
    }

    /// Has the thread do some work, and does not wait.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        work: impl Future<Output = Answer<T>> + Send + 'static,
    ) -> Asked<T> {
        let (answer, answered) = mpsc::channel();
        if let Some(handle) = self.handle() {
            handle.spawn(async move {
                // Nobody hears it where the caller is gone.
                let _ = answer.send(work.await);
            });
        }
        Asked(answered)
    }

    pub(crate) fn failed(&self, why: Option<tokio_postgres::Error>) -> FrontierError {
        let address = self.address.clone();
        let source = match why {
            Some(why) => why.into(),
            None => "its connection was closed".into(),
        };
        FrontierError::Engine { address, source }
    }

    pub(crate) fn corrupt(&self, what: &str) -> FrontierError {
        FrontierError::Corrupt {
            dir: self.address.clone().into(),
            what: what.to_owned(),
        }
    }
}

/// Work that the thread was asked for.
pub(crate) struct Asked<T>(mpsc::Receiver<Answer<T>>);

impl<T> Asked<T> {
    /// Waits for the answer; none where the thread ended before.
    pub(crate) fn answer(self) -> Result<T, Option<tokio_postgres::Error>> {
        match self.0.recv() {
            Ok(answered) => answered.map_err(Some),
            Err(_) => Err(None),
        }
    }
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        // A frontier may be dropped by a thread of another runtime, which must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Connects, and serves the connection until it is closed.
pub(crate) async fn connect(engine: &EngineConfig) -> Answer<Client> {
    match &engine.tls {
        None => {
            let (client, connection) = engine.config.connect(NoTls).await?;
            serve(connection);
            Ok(client)
        }
        Some(tls) => {
            let (client, connection) = engine.config.connect(tls.clone()).await?;
            serve(connection);
            Ok(client)
        }
    }
}

/// Connects for statements that find rows by their keys.
pub(crate) async fn connect_for_rows(engine: &EngineConfig) -> Answer<Client> {
    let client = connect(engine).await?;
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

impl Session {
    /// Connects, and prepares all statements.
    pub(crate) async fn open(config: &EngineConfig) -> Answer<Arc<Session>> {
        let session = Session::open_lazily(config).await?;
        // Sent at once: an engine that is far away is waited for once.
        let client = &session.client;
        let statements = Sql::TEXTS.iter().map(|text| client.prepare(text));
        let prepared = try_join_all(statements).await?;
        for (statement, prepared) in session.statements.iter().zip(prepared) {
            // Nobody else has this session yet.
            let _ = statement.set(prepared);
        }
        Ok(session)
    }

    /// Connects. Each statement is prepared when it is used first.
    pub(crate) async fn open_lazily(config: &EngineConfig) -> Answer<Arc<Session>> {
        let client = connect_for_rows(config).await?;
        let statements = Sql::TEXTS.iter().map(|_| OnceCell::new()).collect();
        Ok(Arc::new(Session { client, statements }))
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) async fn query(&self, sql: Sql, params: Params<'_>) -> Answer<Vec<Row>> {
        self.client.query(self.prepared(sql).await?, params).await
    }

    pub(crate) async fn execute(&self, sql: Sql, params: Params<'_>) -> Answer<u64> {
        self.client.execute(self.prepared(sql).await?, params).await
    }

    /// A statement, prepared. Statements that are used at once go on the wire in their order only if
    /// all were prepared before.
    pub(crate) async fn prepared(&self, sql: Sql) -> Answer<&Statement> {
        let at = sql as usize;
        let prepare = || self.client.prepare(Sql::TEXTS[at]);
        self.statements[at].get_or_try_init(prepare).await
    }
}

/// True if the engine said nothing, or that it ends: what was sent may have taken effect.
pub(crate) fn is_cut(why: Option<&tokio_postgres::Error>) -> bool {
    let Some(why) = why else { return true };
    match why.code() {
        // Class 57P: the engine is shut down, or ends its connections.
        Some(code) => code.code().starts_with("57P"),
        // Whatever else went wrong goes wrong again over another connection.
        None => why.is_closed() || why.source().is_some_and(<dyn Error>::is::<std::io::Error>),
    }
}
