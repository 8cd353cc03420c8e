//! A connection to a daemon over its control socket: one request at a time; rows stay the text that came.
//!
//! The connection opens with the first request and stays open. After the daemon restarted, the next request opens
//! another.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;

use axum::body::Bytes;

use control::reply::{Code, Refusal, Reply};
use control::request;
use control::request::{CaptureStop, Do};
use futures_util::future::{Either, select};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, timeout};

use crate::parse;

/// The longest line accepted from a daemon.
const LINE_MAX: usize = 1 << 20;
/// The most text kept of one reply.
const REPLY_MAX: usize = 16 << 20;
/// The most bytes of a capture that are passed on.
const CAPTURE_MAX: usize = 256 << 20;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a request has no reply.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// No daemon answers.
    Gone(String),
    /// The daemon is of another version; the message says what differs.
    Version(String),
    /// The daemon refused the request.
    Refused(Refusal),
}

impl Fault {
    /// The message for people.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Gone(message) | Self::Version(message) => message,
            Self::Refused(refusal) => &refusal.message,
        }
    }

    /// Whether there is no daemon to speak with.
    pub(crate) fn is_gone(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// The rows of a reply.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Each row as JSON text.
    pub(crate) rows: Vec<Box<str>>,
    /// The daemon had more rows than were asked for.
    pub(crate) more: bool,
}

impl Rows {
    /// The rows as a JSON array.
    pub(crate) fn array(&self) -> String {
        format!("[{}]", self.rows.join(","))
    }
}

/// A daemon's control socket.
pub(crate) struct Link {
    path: PathBuf,
    open: Mutex<Option<Connection>>,
    /// Why there is no daemon, as last said on standard error.
    said: Arc<Lock<Option<String>>>,
}

impl Link {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            open: Mutex::new(None),
            said: Arc::default(),
        }
    }

    /// A link of its own to the same daemon.
    pub(crate) fn another(&self) -> Self {
        Self {
            path: self.path.clone(),
            open: Mutex::new(None),
            said: Arc::clone(&self.said),
        }
    }

    /// Sends a request and returns at most `most` rows of the reply. A request that only shows may be sent twice: the
    /// open connection may be of a daemon that has restarted.
    pub(crate) async fn rows(&self, what: &impl Serialize, most: usize) -> Result<Rows, Fault> {
        let found = self.ask(what, most).await;
        self.say(&found);
        found
    }

    async fn ask(&self, what: &impl Serialize, most: usize) -> Result<Rows, Fault> {
        // While the request runs, the connection is not in its place: if the caller stops waiting, the connection closes
        // and the rest of the reply with it.
        let mut open = self.open.lock().await;
        if let Some(mut kept) = open.take() {
            match limited(kept.rows(what, most)).await {
                Ok(found) => return Ok(keep(&mut open, kept, found)),
                Err(fault @ Fault::Refused(_)) => {
                    *open = Some(kept);
                    return Err(fault);
                }
                Err(_) => {}
            }
        }
        let mut fresh = Connection::open(&self.path).await?;
        match limited(fresh.rows(what, most)).await {
            Ok(found) => Ok(keep(&mut open, fresh, found)),
            Err(fault @ Fault::Refused(_)) => {
                *open = Some(fresh);
                Err(fault)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Sends a request that changes something: once, on a fresh connection.
    pub(crate) async fn change(&self, what: &impl Serialize, most: usize) -> Result<Rows, Fault> {
        let mut fresh = Connection::open(&self.path).await?;
        limited(fresh.rows(what, most)).await
    }

    /// Starts a capture, on a connection of its own.
    pub(crate) async fn capture(&self, what: &Do) -> Result<Capture, Fault> {
        let mut connection = Connection::open(&self.path).await?;
        let id = connection.send(what).await?;
        // The first line is a row, or a refusal.
        limited(async {
            connection.read_line().await?;
            let reply = reply_of(&connection.line)?;
            match reply.error {
                Some(refusal) => Err(refused(refusal)),
                None => Ok(Rows::default()),
            }
        })
        .await?;
        Ok(Capture { connection, id })
    }

    /// Says on standard error when the daemon has gone, is of another version, or is back.
    fn say(&self, found: &Result<Rows, Fault>) {
        let why = match found {
            Err(fault) if fault.is_gone() => Some(fault.message()),
            _ => None,
        };
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.as_deref() == why {
            return;
        }
        match why {
            Some(why) => eprintln!("headend web: {why}"),
            None => eprintln!("headend web: the daemon at {} answers", self.path.display()),
        }
        *said = why.map(ToOwned::to_owned);
    }
}

/// A running capture.
pub(crate) struct Capture {
    connection: Connection,
    id: u64,
}

impl Capture {
    /// Passes the parts of the file to `parts`, and stops the capture after `span`. It ends too when nobody takes the
    /// parts any more: closing the connection ends the capture.
    pub(crate) async fn run(self, span: Duration, parts: mpsc::Sender<io::Result<Bytes>>) {
        let Connection {
            input,
            mut output,
            line,
            next_id,
        } = self.connection;
        let capture = self.id;
        let stop = tokio::spawn(async move {
            sleep(span).await;
            let mut out = Vec::new();
            request::write(&mut out, next_id, &Do::CaptureStop(CaptureStop { capture }));
            // If the daemon has gone, the other direction ends too.
            let _ = output.write_all(&out).await;
            output
        });
        let mut reader = Parts { input, line };
        let copied = pin!(timeout(span + PATIENCE, reader.copy(capture, &parts)));
        let left = pin!(parts.closed());
        let outcome = select(copied, left).await;
        stop.abort();
        if let Either::Left((Ok(Err(fault)), _)) = outcome {
            let error = io::Error::other(fault.message());
            // A viewer that has left does not need it.
            let _ = parts.send(Err(error)).await;
        }
    }
}

/// The receiving side of a capture.
struct Parts {
    input: BufReader<OwnedReadHalf>,
    line: Vec<u8>,
}

impl Parts {
    /// Copies until the end of the file, or until nobody takes it.
    async fn copy(
        &mut self,
        capture: u64,
        parts: &mpsc::Sender<io::Result<Bytes>>,
    ) -> Result<(), Fault> {
        let mut left = CAPTURE_MAX;
        loop {
            read_line(&mut self.input, &mut self.line).await?;
            let reply = reply_of(&self.line)?;
            if reply.id == capture && (reply.end || reply.ok.is_some()) {
                return Ok(());
            }
            let mut octets = reply.octets.unwrap_or(0);
            while octets > 0 {
                let there = self.input.fill_buf().await.map_err(closed)?;
                let part = Bytes::copy_from_slice(&there[..there.len().min(octets)]);
                let length = part.len();
                self.input.consume(length);
                if length == 0 {
                    return Err(closed(io::ErrorKind::UnexpectedEof.into()));
                }
                left = left.saturating_sub(length);
                if left == 0 || parts.send(Ok(part)).await.is_err() {
                    return Ok(());
                }
                octets -= length;
            }
        }
    }
}

/// Keeps a connection unless the rest of a reply is still to come on it.
fn keep(open: &mut Option<Connection>, connection: Connection, found: Rows) -> Rows {
    if !found.more {
        *open = Some(connection);
    }
    found
}

async fn limited(request: impl Future<Output = Result<Rows, Fault>>) -> Result<Rows, Fault> {
    let late = || {
        let seconds = PATIENCE.as_secs();
        Fault::Gone(format!("the daemon did not answer within {seconds} s"))
    };
    timeout(PATIENCE, request).await.map_err(|_| late())?
}

struct Connection {
    input: BufReader<OwnedReadHalf>,
    output: OwnedWriteHalf,
    next_id: u64,
    line: Vec<u8>,
}

impl Connection {
    async fn open(path: &Path) -> Result<Self, Fault> {
        let stream = UnixStream::connect(path)
            .await
            .map_err(|error| Fault::Gone(explain(path, &error)))?;
        let (input, output) = stream.into_split();
        Ok(Self {
            input: BufReader::with_capacity(64 * 1024, input),
            output,
            next_id: 1,
            line: Vec::new(),
        })
    }

    /// Sends a request, and returns its id.
    async fn send(&mut self, what: &impl Serialize) -> Result<u64, Fault> {
        let id = self.next_id;
        self.next_id += 1;
        let mut out = Vec::new();
        request::write(&mut out, id, what);
        self.output.write_all(&out).await.map_err(closed)?;
        Ok(id)
    }

    async fn rows(&mut self, what: &impl Serialize, most: usize) -> Result<Rows, Fault> {
        let id = self.send(what).await?;
        let mut found = Rows::default();
        let mut size = 0;
        loop {
            self.read_line().await?;
            let reply = reply_of(&self.line)?;
            if let (Some(false), Some(refusal)) = (reply.ok, reply.error) {
                return Err(refused(refusal));
            }
            if reply.id != id {
                continue;
            }
            if let Some(row) = reply.row {
                if found.rows.is_empty() {
                    parse::check_schema(row.get()).map_err(Fault::Version)?;
                }
                size += row.get().len();
                if found.rows.len() == most || size > REPLY_MAX {
                    found.more = true;
                    return Ok(found);
                }
                found.rows.push(row.get().into());
            }
            if reply.end || reply.ok == Some(true) {
                return Ok(found);
            }
        }
    }

    async fn read_line(&mut self) -> Result<(), Fault> {
        read_line(&mut self.input, &mut self.line).await
    }
}

/// Reads the next line, without its end.
async fn read_line(input: &mut BufReader<OwnedReadHalf>, line: &mut Vec<u8>) -> Result<(), Fault> {
    line.clear();
    loop {
        let there = input.fill_buf().await.map_err(closed)?;
        if there.is_empty() {
            return Err(closed(io::ErrorKind::UnexpectedEof.into()));
        }
        let end = there.iter().position(|&byte| byte == b'\n');
        let part = end.unwrap_or(there.len());
        if line.len() + part > LINE_MAX {
            let message = format!("the daemon sent a line of more than {LINE_MAX} bytes");
            return Err(Fault::Version(message));
        }
        line.extend_from_slice(&there[..part]);
        input.consume(part + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(());
        }
    }
}

fn reply_of(line: &[u8]) -> Result<Reply<'_>, Fault> {
    parse::reply(line).map_err(Fault::Version)
}

/// A refusal, unless it says that the daemon is of another version.
fn refused(refusal: Refusal) -> Fault {
    // At the start of the text: further on, a viewer's words may be in it.
    let unknown = refusal.code == Code::BadRequest
        && (refusal.message.starts_with("unknown variant")
            || refusal.message.starts_with("unknown field"));
    if refusal.code != Code::Version && !unknown {
        return Fault::Refused(refusal);
    }
    Fault::Version(format!(
        "the daemon is of another version than this headend web {}: {}",
        env!("CARGO_PKG_VERSION"),
        refusal.message
    ))
}

fn closed(error: io::Error) -> Fault {
    Fault::Gone(format!(
        "the daemon has closed the control connection ({error})"
    ))
}

fn explain(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("no daemon at {path}: there is no such socket"),
        io::ErrorKind::ConnectionRefused => {
            format!("no daemon at {path}: no process listens there any more")
        }
        io::ErrorKind::PermissionDenied => {
            format!("{path} may only be used by its owner and group")
        }
        _ => format!("cannot connect to {path}: {error}"),
    }
}
