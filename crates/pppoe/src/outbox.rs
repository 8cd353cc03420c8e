//! Frames that wait to be sent, in one buffer that keeps its memory.

use std::collections::VecDeque;

use crate::route::Route;

/// The most frames that wait; the owner drains far more often.
const FRAMES_MAX: usize = 4_096;

/// Frames in order.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// Where the first frame begins.
    start: usize,
    frames: VecDeque<(Route, u16)>,
}

impl Outbox {
    /// Whether one more frame may be added.
    pub(crate) fn has_room(&self) -> bool {
        self.frames.len() < FRAMES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Adds a frame that `write` appends, if it has at most `most` bytes.
    pub(crate) fn push(
        &mut self,
        route: Route,
        most: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let len = self.bytes.len() - start;
        match u16::try_from(len) {
            Ok(short) if len <= most => {
                self.frames.push_back((route, short));
                true
            }
            Ok(_) | Err(_) => {
                self.bytes.truncate(start);
                false
            }
        }
    }

    /// Moves the first frame to `out`.
    pub(crate) fn pop(&mut self, out: &mut Vec<u8>) -> Option<Route> {
        let (route, len) = self.frames.pop_front()?;
        let end = self.start + usize::from(len);
        out.extend_from_slice(&self.bytes[self.start..end]);
        self.start = end;
        if self.frames.is_empty() {
            self.bytes.clear();
            self.start = 0;
        }
        Some(route)
    }

    /// Bytes and frames that fit without more memory.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> (usize, usize) {
        (self.bytes.capacity(), self.frames.capacity())
    }
}
