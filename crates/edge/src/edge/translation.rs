//! The NAT of an edge.

use nat::{Nat, Range};

use super::Edge;
use crate::access::Access;
use crate::path::nat::Translator;

impl<A: Access> Edge<A> {
    /// Translates the packets of subscribers from these inside addresses from now on. Subscribers join the NAT with their
    /// first packet, and leave it when their session ends.
    ///
    /// # Errors
    /// The NAT, if the edge has several paths: an external port belongs to one table.
    pub fn set_nat(&mut self, nat: Nat, inside: Vec<Range>) -> Result<(), Box<Nat>> {
        if self.config.paths > 1 {
            return Err(Box::new(nat));
        }
        self.path.nat = Some(Box::new(Translator::new(nat, inside)));
        Ok(())
    }

    /// The NAT, if there is one.
    #[must_use]
    pub fn nat(&self) -> Option<&Nat> {
        self.path.nat.as_ref().map(|one| &one.nat)
    }

    /// The NAT, to take its events and to forward ports.
    pub fn nat_mut(&mut self) -> Option<&mut Nat> {
        self.path.nat.as_mut().map(|one| &mut one.nat)
    }
}
