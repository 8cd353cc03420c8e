//! The server in a thread, beside a daemon that is not real.

mod captures;
mod client;
mod fake;
mod limits;
mod security;
mod streams;
mod tls;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use clap::{Args, Command, FromArgMatches};

use crate::WebArgs;
use crate::api::App;
use crate::serve::serve;

/// A directory of a test, removed at its end.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("headend-web-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("control")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What remains there does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The flags of a command line.
pub(crate) fn flags(flags: &[&str]) -> WebArgs {
    let command = WebArgs::augment_args(Command::new("web"));
    let matches = command.try_get_matches_from(std::iter::once("web").chain(flags.iter().copied()));
    WebArgs::from_arg_matches(&matches.unwrap()).unwrap()
}

/// Starts the server of a daemon; it runs until the test's process ends.
fn start(socket: &Path, more: &[&str]) -> SocketAddr {
    let mut all = vec!["--socket", socket.to_str().unwrap()];
    all.extend(more);
    let args = flags(&all);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let served = serve(
            listener,
            App::new(&args).unwrap(),
            crate::tls::acceptor(&args).unwrap(),
        );
        runtime.block_on(served).unwrap();
    });
    address
}
