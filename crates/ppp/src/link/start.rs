//! How a link starts (RFC 1661, section 4.3: Up and Open; RFC 2661, section 4.4.5; RFC 2516, section 7).

use super::Link;
use crate::fsm::Event as Automaton;
use crate::layer::Context;
use crate::proxy::Proxy;

impl Link {
    /// The lower layer is PPPoE, and carries packets of up to `packet_max` bytes. Call this before [`Link::up`].
    pub fn set_ether(&mut self, packet_max: u16) {
        self.lcp.negotiation.set_ether(packet_max);
    }

    /// The lower layer is up: starts LCP.
    pub fn up(&mut self, ctx: &mut Context<'_>) {
        self.fire_lcp(Automaton::Open, ctx);
        self.fire_lcp(Automaton::Up, ctx);
    }

    /// The lower layer is up, and a LAC has negotiated in our name (RFC 2661, section 4.4.5). Continues from there if
    /// we would have agreed to all of it, and returns `true`; otherwise starts LCP.
    pub fn up_with_proxy(&mut self, proxy: &Proxy<'_>, ctx: &mut Context<'_>) -> bool {
        if !self.adopt(proxy, ctx) {
            self.up(ctx);
            return false;
        }
        self.lcp.assume_opened();
        self.lcp_is_up(proxy.claim(self.lcp.negotiation.ask), ctx);
        true
    }

    fn adopt(&mut self, proxy: &Proxy<'_>, ctx: &mut Context<'_>) -> bool {
        let mut lcp = self.lcp.negotiation.clone();
        let fits = proxy.adopt(&mut lcp, ctx);
        if fits {
            self.lcp.negotiation = lcp;
        }
        fits
    }
}
