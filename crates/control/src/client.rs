//! A blocking client of the control socket.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::reply::Reply;
use super::request;

/// The longest line accepted from a daemon; its rows are far shorter.
const LINE_MAX: usize = 1 << 20;

/// A connection to a daemon.
pub struct Client {
    stream: UnixStream,
    next_id: u64,
    out: Vec<u8>,
    input: Vec<u8>,
    /// Bytes of `input` already consumed.
    taken: usize,
}

impl Client {
    /// Connects to the daemon behind `path`.
    ///
    /// # Errors
    /// The message has a remedy if one is known.
    pub fn connect(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path).map_err(|error| explain(path, &error))?;
        Ok(Self::new(stream))
    }

    /// A client on an open connection.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            next_id: 1,
            out: Vec::new(),
            input: Vec::new(),
            taken: 0,
        }
    }

    /// Queues a request and returns its id; [`Client::flush`] sends it.
    pub fn queue<T: Serialize>(&mut self, what: &T) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        request::write(&mut self.out, id, what);
        id
    }

    /// Sends the queued requests.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn flush(&mut self) -> Result<()> {
        self.stream
            .write_all(&self.out)
            .context("the daemon has closed the control connection")?;
        self.out.clear();
        Ok(())
    }

    /// The next line, once there is one; `None` if there is none within `limit`.
    ///
    /// # Errors
    /// The connection is closed, or the line does not follow the protocol.
    pub fn next(&mut self, limit: Option<Duration>) -> Result<Option<Reply<'_>>> {
        let end = loop {
            if let Some(length) = self.line() {
                break self.taken + length;
            }
            if !self.fill(limit)? {
                return Ok(None);
            }
        };
        let line = &self.input[self.taken..end];
        self.taken = end + 1;
        let reply = serde_json::from_slice(line)
            .context("the daemon sent a line that is not of this protocol")?;
        Ok(Some(reply))
    }

    /// Reads the bytes that a line announced, and passes them to `each` as they arrive.
    ///
    /// # Errors
    /// The connection is gone, or `each` failed.
    pub fn octets(
        &mut self,
        mut left: usize,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        while left > 0 {
            if self.taken == self.input.len() {
                self.fill(None)?;
            }
            let there = &self.input[self.taken..];
            let part = &there[..there.len().min(left)];
            each(part)?;
            left -= part.len();
            self.taken += part.len();
        }
        Ok(())
    }

    /// The next line that was already received.
    ///
    /// # Errors
    /// The line does not follow the protocol.
    pub fn next_buffered(&mut self) -> Result<Option<Reply<'_>>> {
        if self.line().is_some() {
            self.next(None)
        } else {
            Ok(None)
        }
    }

    /// Sends a request with one row as its reply, and reads that row.
    ///
    /// # Errors
    /// The request was refused, or the connection is gone.
    pub fn one<T: DeserializeOwned>(&mut self, what: &impl Serialize) -> Result<T> {
        let mut found = None;
        self.rows(what, |row| {
            found = Some(serde_json::from_str(row)?);
            Ok(())
        })?;
        found.context("the daemon answered without a row")
    }

    /// Sends a request and passes each row of the reply to `each`; returns the number of rows.
    ///
    /// # Errors
    /// The request was refused, the connection is gone, or `each` failed.
    pub fn rows(
        &mut self,
        what: &impl Serialize,
        mut each: impl FnMut(&str) -> Result<()>,
    ) -> Result<u64> {
        let id = self.queue(what);
        self.flush()?;
        loop {
            let Some(reply) = self.next(None)? else {
                continue;
            };
            if let Some(error) = refusal(&reply) {
                bail!("{error}");
            }
            if reply.id != id {
                continue;
            }
            if let Some(row) = reply.row {
                each(row.get())?;
            }
            if reply.end {
                return Ok(reply.rows.unwrap_or(0));
            }
        }
    }

    /// Sends a request with a plain success or refusal as its reply; returns the number of items
    /// closed.
    ///
    /// # Errors
    /// The request was refused, or the connection is gone.
    pub fn call(&mut self, what: &impl Serialize) -> Result<u64> {
        let id = self.queue(what);
        self.flush()?;
        loop {
            let Some(reply) = self.next(None)? else {
                continue;
            };
            if let Some(error) = refusal(&reply) {
                bail!("{error}");
            }
            if reply.id == id && reply.ok == Some(true) {
                return Ok(reply.closed.unwrap_or(0));
            }
        }
    }

    fn line(&self) -> Option<usize> {
        self.input[self.taken..]
            .iter()
            .position(|&byte| byte == b'\n')
    }

    /// Reads once; `false` if nothing arrived within `limit`.
    fn fill(&mut self, limit: Option<Duration>) -> Result<bool> {
        self.input.drain(..self.taken);
        self.taken = 0;
        if self.input.len() > LINE_MAX {
            bail!("the daemon sent a line of more than {LINE_MAX} bytes");
        }
        self.stream
            .set_read_timeout(limit.map(|limit| limit.max(Duration::from_millis(1))))?;
        let start = self.input.len();
        self.input.resize(start + 64 * 1024, 0);
        let read = loop {
            match self.stream.read(&mut self.input[start..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.input.truncate(start + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => bail!("the daemon has closed the control connection"),
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(false)
            }
            Err(error) => Err(error).context("the control connection failed"),
        }
    }
}

/// The daemon's refusal, if the reply is one.
pub fn refusal(reply: &Reply<'_>) -> Option<String> {
    (reply.ok == Some(false)).then(|| {
        reply
            .error
            .as_ref()
            .map_or_else(|| "refused".into(), |error| error.message.clone())
    })
}

fn explain(path: &Path, error: &io::Error) -> anyhow::Error {
    let path: PathBuf = path.to_owned();
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!(
            "no daemon at {shown}: there is no such socket; start one with \"headend run --config FILE\", or name its socket with --socket PATH"
        ),
        ErrorKind::ConnectionRefused => anyhow::anyhow!(
            "no daemon at {shown}: no process listens there any more; start one with \"headend run --config FILE\""
        ),
        ErrorKind::PermissionDenied => anyhow::anyhow!(
            "{shown} may only be used by its owner and group; use their account, or sudo"
        ),
        _ => anyhow::anyhow!("cannot connect to {shown}: {error}"),
    }
}
