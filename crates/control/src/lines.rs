//! A server's side of one connection: lines in and lines out, both bounded.

use std::io::{self, ErrorKind, Read, Write};

use super::LINE_MAX;
use super::reply::{self, Code, Refusal};

/// Number of unsent bytes at which a client's requests pause until it has read some.
pub const OUT_HIGH: usize = 128 * 1024;

/// Bytes read ahead.
const INPUT_MAX: usize = 4 * LINE_MAX;

/// Lines received and lines to send. The socket itself is elsewhere.
#[derive(Default)]
pub struct Lines {
    input: Vec<u8>,
    /// Bytes of `input` already consumed.
    taken: usize,
    out: Vec<u8>,
    written: usize,
    /// The client has closed its sending side.
    ended: bool,
    /// Only the pending output remains to be written.
    closing: bool,
    /// The client reads no more, so replies are dropped.
    deaf: bool,
}

/// The result of reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The connection is fine.
    Fine,
    /// The connection failed.
    Lost,
}

impl Lines {
    /// Whether more of its input should be read.
    pub fn wants_input(&self) -> bool {
        let waiting = self.input.len() - self.taken;
        !self.ended && !self.closing && waiting < INPUT_MAX && !self.is_full()
    }

    /// The client reads no more: its complete lines are still carried out, and their replies dropped.
    pub fn hang_up(&mut self) {
        self.deaf = true;
        self.drop_output();
    }

    /// Whether the client reads no more.
    pub fn is_deaf(&self) -> bool {
        self.deaf
    }

    fn drop_output(&mut self) {
        self.out.clear();
        self.written = 0;
    }

    /// Whether bytes wait to be written.
    pub fn has_output(&self) -> bool {
        self.out_len() > 0
    }

    /// Whether the replies have reached the bound.
    pub fn is_full(&self) -> bool {
        self.out_len() >= OUT_HIGH
    }

    /// Whether a complete line is waiting.
    pub fn has_line(&self) -> bool {
        self.input[self.taken..].contains(&b'\n')
    }

    /// Whether only the pending output remains to be written.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether the connection can be closed once none of its requests is in progress.
    pub fn is_done(&self) -> bool {
        !self.has_output() && (self.closing || self.ended && !self.has_line())
    }

    /// Reads pending input, up to the bound. A lost connection has no more input; what came before stays.
    pub fn read(&mut self, stream: &mut impl Read) -> Heard {
        self.input.drain(..self.taken);
        self.taken = 0;
        while self.wants_input() {
            let start = self.input.len();
            self.input.resize(start + LINE_MAX, 0);
            let read = stream.read(&mut self.input[start..]);
            self.input.truncate(start + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.ended = true,
                Ok(count) if count < LINE_MAX => return Heard::Fine,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::Fine,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.ended = true;
                    return Heard::Lost;
                }
            }
        }
        Heard::Fine
    }

    /// Writes as much as the other side accepts.
    pub fn write(&mut self, stream: &mut impl Write) -> Heard {
        if self.deaf {
            self.drop_output();
        }
        while self.has_output() {
            match stream.write(&self.out[self.written..]) {
                Ok(0) => return Heard::Lost,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Without this, a buffer that is never emptied would grow without bound.
                    if self.written >= OUT_HIGH {
                        self.out.drain(..self.written);
                        self.written = 0;
                    }
                    return Heard::Fine;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::Lost,
            }
        }
        self.out.clear();
        self.out.shrink_to(2 * OUT_HIGH);
        self.written = 0;
        Heard::Fine
    }

    /// Passes the next complete line that is not empty to `each`, with the buffer for replies. `false` when there is none; one that
    /// is too long is refused, and the connection closed.
    pub fn next_line(&mut self, each: impl FnOnce(&[u8], &mut Vec<u8>)) -> bool {
        while !self.closing {
            let rest = &self.input[self.taken..];
            let Some(length) = rest.iter().position(|&byte| byte == b'\n') else {
                if rest.len() > LINE_MAX {
                    self.refuse_line();
                }
                return false;
            };
            let line = self.taken..self.taken + length;
            self.taken = line.end + 1;
            match length {
                0 => {}
                1..=LINE_MAX => {
                    each(&self.input[line], &mut self.out);
                    return true;
                }
                _ => self.refuse_line(),
            }
        }
        false
    }

    fn refuse_line(&mut self) {
        let message = format!("a line has more than {LINE_MAX} bytes");
        self.close_with(&Refusal::new(Code::BadRequest, message));
    }

    /// Replies with the reason, and closes once the reply is written.
    pub fn close_with(&mut self, refusal: &Refusal) {
        reply::refused(&mut self.out, 0, refusal);
        self.closing = true;
        self.input.clear();
        self.taken = 0;
    }

    /// Where replies are appended.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Bytes waiting to be written.
    pub fn out_len(&self) -> usize {
        self.out.len() - self.written
    }
}

/// Whether an accept failed because no descriptor was free.
pub fn is_shortage(error: &io::Error) -> bool {
    let shortages = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    shortages
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> (Lines, Vec<Vec<u8>>) {
        let mut lines = Lines::default();
        let mut stream = text;
        let mut got = Vec::new();
        assert_eq!(lines.read(&mut stream), Heard::Fine);
        while lines.next_line(|line, _| got.push(line.to_vec())) {}
        (lines, got)
    }

    #[test]
    fn whole_lines_are_handed_out_and_empty_ones_left_out() {
        let (mut lines, got) = lines(b"one\n\ntwo\nthr");
        assert_eq!(got, [b"one".to_vec(), b"two".to_vec()]);
        assert!(!lines.has_line() && !lines.is_closing());
        lines.read(&mut &b"ee\n"[..]);
        let mut last: Vec<u8> = Vec::new();
        assert!(lines.next_line(|line, _| last.extend(line)));
        assert_eq!(last, b"three");
        lines.read(&mut &b""[..]);
        assert!(lines.is_done());
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_and_the_last_thing_heard() {
        let long = vec![b'a'; LINE_MAX + 1];
        for text in [long.clone(), [&long[..], b"\nnext\n"].concat()] {
            let (mut lines, got) = lines(&text);
            assert!(got.is_empty() && lines.is_closing() && !lines.wants_input());
            let mut out = Vec::new();
            assert_eq!(lines.write(&mut out), Heard::Fine);
            let said = String::from_utf8(out).unwrap();
            assert!(said.contains("more than 16384 bytes"), "{said}");
            assert!(lines.is_done());
        }
    }

    #[test]
    fn the_lines_of_a_client_that_left_are_still_there_and_replies_are_dropped() {
        struct Reset<'a>(&'a [u8]);
        impl Read for Reset<'_> {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                match self.0.read(out)? {
                    0 => Err(ErrorKind::ConnectionReset.into()),
                    count => Ok(count),
                }
            }
        }
        let mut lines = Lines::default();
        let mut stream = Reset(b"one\ntwo\ncut");
        assert_eq!(lines.read(&mut stream), Heard::Fine);
        assert_eq!(lines.read(&mut stream), Heard::Lost);
        lines.hang_up();
        let mut got = Vec::new();
        while lines.next_line(|line, out| {
            got.push(line.to_vec());
            out.extend(b"reply\n");
        }) {}
        assert_eq!(got, [b"one".to_vec(), b"two".to_vec()]);
        let mut out = Vec::new();
        assert_eq!(lines.write(&mut out), Heard::Fine);
        assert!(out.is_empty() && lines.is_done() && !lines.wants_input());
    }

    #[test]
    fn who_does_not_read_is_not_listened_to() {
        let mut lines = Lines::default();
        lines.out().resize(OUT_HIGH, b'x');
        assert!(lines.is_full() && !lines.wants_input());
        lines.write(&mut Vec::new());
        assert!(lines.wants_input());
    }
}
