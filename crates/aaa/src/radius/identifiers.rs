//! Maps identifiers to requests. An identifier has 8 bits, and every socket has its own 256.

use std::collections::VecDeque;

/// No request.
const NONE: u32 = u32::MAX;

/// An identifier on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identifier {
    pub(super) socket: u16,
    pub(super) id: u8,
}

/// The identifiers of one service. The one free for longest is used first, so that a server's memory of an old
/// request, or a late reply to it, is unlikely to meet a new request.
pub(super) struct Identifiers {
    free: VecDeque<Identifier>,
    /// The request, by socket and identifier.
    taken: Vec<[u32; 256]>,
    sockets_max: u16,
}

impl Identifiers {
    pub(super) fn new(sockets_max: u16) -> Self {
        Self {
            free: VecDeque::new(),
            taken: Vec::new(),
            sockets_max,
        }
    }

    /// Sets the most sockets; those in use stay.
    pub(super) fn set_sockets_max(&mut self, sockets_max: u16) {
        self.sockets_max = sockets_max;
    }

    /// Whether an identifier is free.
    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty() || self.taken.len() < usize::from(self.sockets_max)
    }

    /// Allocates an identifier, on a further socket if those in use have none. It belongs to no request until
    /// [`Identifiers::assign`].
    pub(super) fn take(&mut self) -> Option<Identifier> {
        if self.free.is_empty() && self.has_free() {
            let socket = self.taken.len() as u16;
            self.taken.push([NONE; 256]);
            self.free
                .extend((0..=u8::MAX).map(|id| Identifier { socket, id }));
        }
        self.free.pop_front()
    }

    /// Assigns an allocated identifier to a request.
    pub(super) fn assign(&mut self, identifier: Identifier, request: u32) {
        if let Some(place) = self.place(identifier) {
            *place = request;
        }
    }

    /// The request with this identifier.
    pub(super) fn find(&self, identifier: Identifier) -> Option<u32> {
        let socket = self.taken.get(usize::from(identifier.socket))?;
        let request = socket[usize::from(identifier.id)];
        (request != NONE).then_some(request)
    }

    /// Frees an identifier.
    pub(super) fn release(&mut self, identifier: Identifier) {
        if let Some(place) = self.place(identifier) {
            *place = NONE;
            self.free.push_back(identifier);
        }
    }

    /// Sockets in use.
    pub(super) fn sockets(&self) -> u16 {
        self.taken.len() as u16
    }

    /// Identifiers in use.
    pub(super) fn taken(&self) -> usize {
        self.taken.len() * 256 - self.free.len()
    }

    fn place(&mut self, identifier: Identifier) -> Option<&mut u32> {
        let socket = self.taken.get_mut(usize::from(identifier.socket))?;
        Some(&mut socket[usize::from(identifier.id)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_more_is_used_only_when_all_identifiers_of_the_others_are_taken() {
        let mut identifiers = Identifiers::new(2);
        let taken: Vec<_> = (0..512)
            .map(|request| {
                let identifier = identifiers.take().unwrap();
                identifiers.assign(identifier, request);
                identifier
            })
            .collect();
        assert_eq!(taken[255].socket, 0);
        assert_eq!(taken[256].socket, 1);
        assert_eq!((identifiers.taken(), identifiers.sockets()), (512, 2));
        assert_eq!(identifiers.take(), None);
        for (identifier, request) in taken.into_iter().zip(0..) {
            assert_eq!(identifiers.find(identifier), Some(request));
            identifiers.release(identifier);
            assert_eq!(identifiers.find(identifier), None);
        }
        assert_eq!(identifiers.taken(), 0);
    }

    #[test]
    fn an_identifier_comes_again_after_all_the_others() {
        let mut identifiers = Identifiers::new(1);
        let first = identifiers.take().unwrap();
        identifiers.release(first);
        for _ in 0..255 {
            let other = identifiers.take().unwrap();
            assert_ne!(other, first);
            identifiers.release(other);
        }
        assert_eq!(identifiers.take(), Some(first));
    }

    #[test]
    fn a_socket_that_is_not_ours_has_no_requests() {
        let identifiers = Identifiers::new(1);
        assert_eq!(identifiers.find(Identifier { socket: 9, id: 1 }), None);
    }
}
