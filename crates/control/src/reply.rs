//! The replies of the daemon: one line each, with the id of the request.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::VERSION;

/// A line as a client reads it. The fields that are present tell its kind.
#[derive(Debug, Deserialize)]
pub struct Reply<'a> {
    /// The request's id; 0 where it could not be read.
    pub id: u64,
    /// The request was done (`true`) or refused (`false`).
    pub ok: Option<bool>,
    /// Why it was refused.
    pub error: Option<Refusal>,
    /// The number of items closed.
    pub closed: Option<u64>,
    /// One row of a `show`.
    #[serde(borrow)]
    pub row: Option<&'a RawValue>,
    /// This many raw bytes follow the line.
    pub octets: Option<usize>,
    /// This is the last line for the request.
    #[serde(default)]
    pub end: bool,
    /// The number of lines before the end.
    pub rows: Option<u64>,
    /// A creation: the local tunnel id.
    pub tunnel: Option<u32>,
    /// A creation: the local session id.
    pub session: Option<u32>,
    /// A creation: whether it is up. Absent if the request did not wait.
    pub up: Option<bool>,
    /// A creation: how long it took, in milliseconds.
    pub ms: Option<f64>,
    /// A creation: why it is not up.
    #[serde(borrow)]
    pub reason: Option<Cow<'a, str>>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// The code, for programs.
    pub code: Code,
    /// The message, for people.
    pub message: String,
}

impl Refusal {
    /// A refusal with its code and a message for people.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// The kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Not a request, or one with an unknown verb or argument.
    BadRequest,
    /// Another protocol version.
    Version,
    /// No such tunnel or session.
    NotFound,
    /// Not possible in the current state.
    Refused,
    /// A limit is reached.
    Limit,
}

/// The outcome of one creation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Created<'a> {
    /// Local tunnel id.
    pub tunnel: u32,
    /// Local session id, if a session was requested.
    pub session: Option<u32>,
    /// Whether it is up; `None` if the request did not wait.
    pub up: Option<bool>,
    /// How long it took.
    pub ms: Option<f64>,
    /// Why it is not up.
    pub reason: Option<&'a str>,
}

/// Appends a row.
pub fn row<T: Serialize>(out: &mut Vec<u8>, id: u64, row: &T) {
    #[derive(Serialize)]
    struct Line<'a, T> {
        v: u32,
        id: u64,
        row: &'a T,
    }
    line(
        out,
        &Line {
            v: VERSION,
            id,
            row,
        },
    );
}

/// The rows of one reply, counted.
pub struct Rows<'a> {
    out: &'a mut Vec<u8>,
    id: u64,
    /// The number of rows so far.
    pub count: u64,
}

impl<'a> Rows<'a> {
    /// Rows of the request `id`.
    pub fn new(out: &'a mut Vec<u8>, id: u64) -> Self {
        Self { out, id, count: 0 }
    }

    /// Appends a row.
    pub fn push(&mut self, row: &impl Serialize) {
        self::row(self.out, self.id, row);
        self.count += 1;
    }
}

/// Appends raw bytes after a line with their number.
pub fn octets(out: &mut Vec<u8>, id: u64, octets: &[u8]) {
    #[derive(Serialize)]
    struct Line {
        v: u32,
        id: u64,
        octets: usize,
    }
    line(
        out,
        &Line {
            v: VERSION,
            id,
            octets: octets.len(),
        },
    );
    out.extend_from_slice(octets);
}

/// Appends the end after `rows` lines.
pub fn end(out: &mut Vec<u8>, id: u64, rows: u64) {
    #[derive(Serialize)]
    struct Line {
        v: u32,
        id: u64,
        end: bool,
        rows: u64,
    }
    line(
        out,
        &Line {
            v: VERSION,
            id,
            end: true,
            rows,
        },
    );
}

/// Appends that the request was done and closed `closed` tunnels or sessions.
pub fn done(out: &mut Vec<u8>, id: u64, closed: Option<u64>) {
    #[derive(Serialize)]
    struct Line {
        v: u32,
        id: u64,
        ok: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        closed: Option<u64>,
    }
    line(
        out,
        &Line {
            v: VERSION,
            id,
            ok: true,
            closed,
        },
    );
}

/// Appends that the request is refused.
pub fn refused(out: &mut Vec<u8>, id: u64, error: &Refusal) {
    #[derive(Serialize)]
    struct Line<'a> {
        v: u32,
        id: u64,
        ok: bool,
        error: &'a Refusal,
    }
    line(
        out,
        &Line {
            v: VERSION,
            id,
            ok: false,
            error,
        },
    );
}

/// Appends the outcome of one creation.
pub fn created(out: &mut Vec<u8>, id: u64, created: Created<'_>) {
    #[derive(Serialize)]
    struct Line<'a> {
        v: u32,
        id: u64,
        tunnel: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        up: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ms: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    }
    let Created {
        tunnel,
        session,
        up,
        ms,
        reason,
    } = created;
    line(
        out,
        &Line {
            v: VERSION,
            id,
            tunnel,
            session,
            up,
            ms,
            reason,
        },
    );
}

fn line<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(&mut *out, value).expect("a reply has no key that JSON cannot have");
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_look_as_documented() {
        assert_eq!(
            text(|out| row(out, 7, &serde_json::json!({"a": 1}))),
            "{\"v\":1,\"id\":7,\"row\":{\"a\":1}}\n"
        );
        assert_eq!(
            text(|out| end(out, 7, 2)),
            "{\"v\":1,\"id\":7,\"end\":true,\"rows\":2}\n"
        );
        assert_eq!(
            text(|out| done(out, 7, None)),
            "{\"v\":1,\"id\":7,\"ok\":true}\n"
        );
        assert_eq!(
            text(|out| refused(out, 7, &Refusal::new(Code::NotFound, "no tunnel 5"))),
            "{\"v\":1,\"id\":7,\"ok\":false,\"error\":{\"code\":\"not-found\",\"message\":\"no tunnel 5\"}}\n"
        );
        let up = Created {
            tunnel: 5,
            session: Some(9),
            up: Some(true),
            ms: Some(1.5),
            reason: None,
        };
        assert_eq!(
            text(|out| created(out, 7, up)),
            "{\"v\":1,\"id\":7,\"tunnel\":5,\"session\":9,\"up\":true,\"ms\":1.5}\n"
        );
    }

    #[test]
    fn a_client_reads_them_again() {
        let line = text(|out| {
            let failed = Created {
                tunnel: 5,
                up: Some(false),
                reason: Some("a \"b\""),
                ..Created::default()
            };
            created(out, 7, failed);
        });
        let reply: Reply = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (reply.id, reply.tunnel, reply.up),
            (7, Some(5), Some(false))
        );
        assert_eq!(reply.reason.as_deref(), Some("a \"b\""));
        assert!(!reply.end && reply.ok.is_none() && reply.row.is_none());
    }
}
