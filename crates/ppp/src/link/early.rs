//! What a peer asks of IPCP and IPv6CP before the owner has let it in.
//!
//! Where nobody proves itself, the peer is in the network phase as soon as LCP is open (RFC 1661, section 3.6) and sends
//! its first requests at once, often in the datagram behind its last LCP packet. The owner still looks up the peer then.
//! A request discarded meanwhile comes again only when the peer's Restart timer ends, after three seconds. So the link
//! keeps the latest request of each protocol, and answers it once the peer is let in.

use core::net::Ipv4Addr;

use base::snapshot::{Codec, Part};
use wire::ppp::control::{Control, Options, code};
use wire::ppp::{Frame, protocol};

use super::{Link, Own};
use crate::event::Discard;
use crate::layer::Context;
use crate::{ipcp, snapshot};

/// The longest frame that is kept. Requests of IPCP and IPv6CP with all options in use are shorter.
const FRAME_MAX: usize = 128;

/// The latest early request of IPCP and of IPv6CP, as it came.
#[derive(Clone, Debug, Default)]
pub(super) struct Early([Option<Box<[u8]>>; 2]);

impl Part for Early {
    const NAME: &'static str = "early";

    fn exchange<C: Codec>(&mut self, codec: &mut C) {
        let Self([ipcp, ipv6cp]) = self;
        snapshot::maybe_octets(codec, 1, "ipcp", ipcp, FRAME_MAX);
        snapshot::maybe_octets(codec, 2, "ipv6cp", ipv6cp, FRAME_MAX);
    }
}

impl Link {
    /// Keeps a packet of a network protocol that is not open yet, if that is a request and the owner still decides about
    /// a peer that need not prove itself. During authentication such packets are silently discarded (RFC 1661, section
    /// 3.5).
    pub(super) fn keep_early(
        &mut self,
        frame: &Frame<'_>,
        octets: &[u8],
        ctx: &Context<'_>,
    ) -> Result<(), Discard> {
        let is_early = self.lcp.negotiation.ask.is_none() && self.awaits_answer();
        let packet = Control::parse(frame.information).map_err(|_| Discard::Malformed);
        if !is_early || packet?.code != code::CONFIGURE_REQUEST || octets.len() > FRAME_MAX {
            return Err(Discard::Phase);
        }
        self.spend(1, ctx)?;
        let own = self
            .own
            .get_or_insert_with(|| Box::new(Own::Early(Early::default())));
        // A client lets the network in without its owner's answer.
        if let Own::Early(Early(kept)) = &mut **own {
            kept[usize::from(frame.protocol == protocol::IPV6CP)] = Some(octets.into());
        }
        Ok(())
    }

    /// Answers what was kept. What is wrong with such a packet shows in its answer.
    pub(super) fn heed_early(&mut self, ctx: &mut Context<'_>) {
        let Some(Early(kept)) = self.take_early() else {
            return;
        };
        for octets in kept.iter().flatten() {
            let _ = self.handle(octets, ctx);
        }
    }

    pub(super) fn forget_early(&mut self) {
        self.take_early();
    }

    fn take_early(&mut self) -> Option<Early> {
        let own = self.own.take_if(|own| matches!(**own, Own::Early(_)))?;
        match *own {
            Own::Early(early) => Some(early),
            Own::Client(_) => None,
        }
    }

    /// The IPv4 address that the peer asked for before it was let in. An owner that lets peers choose calls this before
    /// [`Link::accept`], and may put the address into the grant.
    #[must_use]
    pub fn early_wish(&self) -> Option<Ipv4Addr> {
        match self.own.as_deref()? {
            Own::Early(Early([request, _])) => ipcp::named(request_options(request.as_deref()?)?),
            Own::Client(_) => None,
        }
    }

    /// The IPv4 address that a frame asks for, if it is the peer's first IPCP request and names another address than
    /// the granted one. An owner that lets peers choose calls this before [`Link::handle`], and may grant the address
    /// by [`Link::change_ipv4`].
    #[must_use]
    pub fn wish(&self, octets: &[u8]) -> Option<Ipv4Addr> {
        let ipcp = self.ipcp.as_ref().filter(|ipcp| ipcp.is_unasked())?;
        ipcp.negotiation.wish(request_options(octets)?)
    }

    /// Grants the peer this IPv4 address in place of the earlier one. `false` if the peer already knows the earlier
    /// one, or has no IPv4.
    pub fn change_ipv4(&mut self, peer: Ipv4Addr) -> bool {
        let ipcp = self.ipcp.as_mut().filter(|ipcp| ipcp.is_unasked());
        ipcp.map(|ipcp| ipcp.negotiation.set_peer(peer)).is_some()
    }
}

/// The options of a frame that is a whole Configure-Request of IPCP.
fn request_options(octets: &[u8]) -> Option<Options<'_>> {
    let frame = Frame::parse(octets).ok()?;
    let packet = Control::parse(frame.information).ok()?;
    let options = Options::new(packet.data);
    let asks = frame.protocol == protocol::IPCP && packet.code == code::CONFIGURE_REQUEST;
    (asks && options.are_whole()).then_some(options)
}
