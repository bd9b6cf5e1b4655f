//! nginx on loopback as a file server: fast, and independent of our code.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// How to start nginx, and the files to serve.
#[derive(Clone, Debug)]
pub struct NginxSpec {
    /// The path of the nginx program.
    pub program: PathBuf,
    /// The path of nginx's list of media types, `mime.types`.
    pub mime_types: PathBuf,
    /// The folder of the files. Symbolic links in it are followed.
    pub root: PathBuf,
    /// An empty folder for the configuration, the error log and the process ID.
    pub dir: PathBuf,
    /// The destination of the access log.
    pub log: NginxLogDestination,
    /// The address and protocol to serve on.
    pub endpoint: NginxEndpoint,
    /// The format of a log line in nginx's variables, such as `$status $request_uri`.
    pub log_line: &'static str,
    /// Whether clients that accept gzip get `FILE.gz` in place of `FILE`, if there is such a file.
    pub sends_gzip: bool,
}

/// The address and protocol on which nginx serves. The port is any free port.
#[derive(Clone, Debug)]
pub enum NginxEndpoint {
    /// HTTP/1.1 on 127.0.0.1.
    Ipv4,
    /// HTTP/1.1 on `::1`.
    Ipv6,
    /// HTTP/2 over TLS on 127.0.0.1.
    Http2 {
        /// The host name in the certificate.
        host: &'static str,
        /// The certificate, a PEM file.
        certificate: PathBuf,
        /// The private key, a PEM file.
        key: PathBuf,
    },
    /// Hosts on 127.0.0.1 by name, each with its own certificate, over TLS 1.3. The root of the
    /// files may contain `$host`.
    Hosts {
        /// The folder of certificate chains, `HOST.pem` for each host.
        certificates: PathBuf,
        /// The private key of all certificates, a PEM file.
        key: PathBuf,
        /// Whether to offer HTTP/2 in addition to HTTP/1.1.
        is_http2: bool,
    },
}

/// The destination of nginx's access log.
#[derive(Clone, Debug)]
pub enum NginxLogDestination {
    /// The log goes to the pipe that [`Nginx::lines`] returns, unbuffered.
    Piped,
    /// The log goes to this file, in blocks of about 64 KiB. The file is complete once nginx has
    /// ended.
    File(PathBuf),
}

/// A running server of the files in one folder. Dropping it stops nginx.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    origin: String,
    port: u16,
}

impl Nginx {
    /// Starts nginx on a free port.
    ///
    /// # Errors
    /// If a file can't be written or the program can't be started.
    pub fn start(spec: &NginxSpec) -> io::Result<Nginx> {
        // Pass nginx a socket that already listens, as nginx itself does when its program is
        // replaced at run time. So no other process can take the port, and clients can connect
        // immediately.
        let socket = TcpListener::bind(spec.endpoint.address(0))?;
        socket.set_nonblocking(true)?;
        let port = socket.local_addr()?.port();
        fs::write(spec.dir.join("nginx.conf"), configuration(spec, port))?;
        let child = Command::new(&spec.program)
            .args(["-c", "nginx.conf", "-e", "error.log", "-p"])
            .arg(&spec.dir)
            .env("NGINX", "0;")
            .stdin(OwnedFd::from(socket))
            .stdout(Stdio::piped())
            .spawn()?;
        let origin = match &spec.endpoint {
            NginxEndpoint::Http2 { host, .. } => format!("https://{host}:{port}"),
            NginxEndpoint::Hosts { .. } => format!("https://127.0.0.1:{port}"),
            plain => format!("http://{}", plain.address(port)),
        };
        Ok(Nginx {
            child,
            origin,
            port,
        })
    }

    /// Returns the server's URL, with a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/", self.origin)
    }

    /// Returns the server's port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Takes the output of nginx for [`NginxLogDestination::Piped`]. `None` after the first call.
    pub fn lines(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }
}

impl NginxEndpoint {
    fn address(&self, port: u16) -> String {
        match self {
            NginxEndpoint::Ipv6 => format!("[::1]:{port}"),
            NginxEndpoint::Ipv4 | NginxEndpoint::Http2 { .. } | NginxEndpoint::Hosts { .. } => {
                format!("127.0.0.1:{port}")
            }
        }
    }

    /// Returns the arguments of nginx's `listen` directive.
    fn listen(&self, port: u16) -> String {
        let address = self.address(port);
        match self {
            NginxEndpoint::Http2 {
                certificate, key, ..
            } => {
                let (certificate, key) = (quoted(certificate), quoted(key));
                format!(
                    "{address} ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key}"
                )
            }
            NginxEndpoint::Hosts {
                certificates,
                key,
                is_http2,
            } => {
                let chain = quoted(&certificates.join("$ssl_server_name.pem"));
                let http2 = if *is_http2 { " http2" } else { "" };
                // With the backlog of Rust's `TcpListener`, which is 128, the system drops attempts
                // to connect while a thousand clients shake hands.
                format!(
                    "{address} backlog=4096 ssl{http2}; ssl_protocols TLSv1.3; ssl_certificate {chain}; \
                     ssl_certificate_key {}",
                    quoted(key)
                )
            }
            NginxEndpoint::Ipv4 | NginxEndpoint::Ipv6 => address,
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM makes nginx stop its worker too; KILL would leave the worker running.
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        if sent.is_ok_and(|status| status.success()) {
            let _ = self.child.wait();
        }
    }
}

/// Returns nginx's configuration. The line `user root` lets nginx's worker process read the same
/// files as the parent process if both run as root. Otherwise the line has no effect.
fn configuration(spec: &NginxSpec, port: u16) -> String {
    let log = match &spec.log {
        NginxLogDestination::Piped => "/dev/stdout asked".to_owned(),
        NginxLogDestination::File(path) => format!("{} asked buffer=64k", quoted(path)),
    };
    let dir = spec.dir.display();
    format!(
        r#"daemon off;
user root;
worker_processes 1;
worker_rlimit_nofile 18000;
pid "{dir}/pid";
error_log "{dir}/error.log";
events {{ worker_connections 16384; }}
http {{
    include {types};
    default_type application/octet-stream;
    client_body_temp_path "{dir}/body";
    proxy_temp_path "{dir}/proxy";
    fastcgi_temp_path "{dir}/fastcgi";
    uwsgi_temp_path "{dir}/uwsgi";
    scgi_temp_path "{dir}/scgi";
    log_format asked "{line}";
    access_log {log};
    server {{
        listen {listen};
        root {root};
        index index.html;
        gzip_static {gzip};
    }}
}}
"#,
        types = quoted(&spec.mime_types),
        line = spec.log_line,
        gzip = if spec.sends_gzip { "on" } else { "off" },
        listen = spec.endpoint.listen(port),
        root = quoted(&spec.root),
    )
}

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}
