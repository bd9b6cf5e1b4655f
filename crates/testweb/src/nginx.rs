//! nginx on loopback, as a server of files: a server that others wrote, and a fast one.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The nginx to start, and the files it serves.
#[derive(Clone, Debug)]
pub struct NginxSpec {
    /// The program.
    pub program: PathBuf,
    /// Its list of media types, `mime.types`.
    pub mime_types: PathBuf,
    /// The folder of the files. Links in it are followed.
    pub root: PathBuf,
    /// An empty folder for its configuration, its error log and its process number.
    pub dir: PathBuf,
    /// Where it writes a line for each request.
    pub log: NginxLog,
    /// The address and the protocol that it serves by.
    pub endpoint: NginxEndpoint,
    /// What a line of the log says, in nginx's variables, such as `$status $request_uri`.
    pub log_line: &'static str,
}

/// The address and the protocol by which nginx serves. The port is a free one.
#[derive(Clone, Debug)]
pub enum NginxEndpoint {
    /// HTTP/1.1 at 127.0.0.1.
    Ipv4,
    /// HTTP/1.1 at `::1`.
    Ipv6,
    /// HTTP/2 over TLS at 127.0.0.1.
    Http2 {
        /// The name that the certificate is of.
        host: &'static str,
        /// The certificate, a PEM file.
        certificate: PathBuf,
        /// Its key, a PEM file.
        key: PathBuf,
    },
}

/// Where nginx writes a line for each request.
#[derive(Clone, Debug)]
pub enum NginxLog {
    /// At once, to [`Nginx::lines`].
    Piped,
    /// To this file, some 64 KiB at a time; it is whole when nginx has ended.
    File(PathBuf),
}

/// A server of the files of one folder. It ends when this goes.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    origin: String,
    port: u16,
}

impl Nginx {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// Where a file can't be written or the program can't be started.
    pub fn start(spec: &NginxSpec) -> io::Result<Nginx> {
        // nginx takes over a socket that listens already, as it does when its program is
        // replaced while it runs: so the port is free, and nobody waits for it to be open.
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
            plain => format!("http://{}", plain.address(port)),
        };
        Ok(Nginx {
            child,
            origin,
            port,
        })
    }

    /// Where it serves, with a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/", self.origin)
    }

    /// The port at which it serves.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The lines of [`NginxLog::Piped`], once.
    pub fn lines(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }
}

impl NginxEndpoint {
    fn address(&self, port: u16) -> String {
        match self {
            NginxEndpoint::Ipv6 => format!("[::1]:{port}"),
            NginxEndpoint::Ipv4 | NginxEndpoint::Http2 { .. } => format!("127.0.0.1:{port}"),
        }
    }

    /// As nginx's configuration says it.
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
            NginxEndpoint::Ipv4 | NginxEndpoint::Ipv6 => address,
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM, so that it ends its worker too; KILL would leave that one behind.
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        if sent.is_ok_and(|status| status.success()) {
            let _ = self.child.wait();
        }
    }
}

/// Without root, `user` does nothing; as root, the worker can read what its starter can.
fn configuration(spec: &NginxSpec, port: u16) -> String {
    let log = match &spec.log {
        NginxLog::Piped => "/dev/stdout asked".to_owned(),
        NginxLog::File(path) => format!("{} asked buffer=64k", quoted(path)),
    };
    let dir = spec.dir.display();
    format!(
        r#"daemon off;
user root;
worker_processes 1;
pid "{dir}/pid";
error_log "{dir}/error.log";
events {{ worker_connections 1024; }}
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
    }}
}}
"#,
        types = quoted(&spec.mime_types),
        line = spec.log_line,
        listen = spec.endpoint.listen(port),
        root = quoted(&spec.root),
    )
}

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}
