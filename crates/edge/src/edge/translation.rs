//! The NAT of an edge.

use base::Instant;
use nat::{Forward, ForwardError, ForwardRequest, Nat, Range};

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

    /// Translates packets from these inside addresses from now on. Mappings of other addresses stay until they time out,
    /// for packets from the inside.
    pub fn set_nat_inside(&mut self, inside: Vec<Range>) {
        if let Some(translator) = &mut self.path.nat {
            translator.set_inside(inside);
        }
    }

    /// Forwards an external port to an inside address. The subscriber with that address, if it is connected, owns the port
    /// unless the port is below the port blocks; [`ForwardRequest::subscriber`] is not used.
    ///
    /// # Errors
    /// `None` without a NAT; otherwise why the port cannot be forwarded.
    pub fn forward_port(
        &mut self,
        wish: &ForwardRequest,
        now: Instant,
    ) -> Option<Result<Forward, ForwardError>> {
        let subscriber = self.subscriber_at(wish.inside);
        let subscriber = subscriber.map(|key| (key.0.index, key.to_token()));
        let translator = self.path.nat.as_mut()?;
        Some(translator.forward(subscriber, wish, now))
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
