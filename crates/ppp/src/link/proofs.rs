//! Authentication on a link (RFC 1661, section 3.5): the peer's packets, the claims in them, and the owner's answers.

use wire::ppp::control::Control;
use wire::ppp::{Frame, protocol};

use super::{Grant, Link};
use crate::applicant::Outcome;
use crate::eap::Challenge;
use crate::event::{Claim, Discard, Event, LinkEnd};
use crate::layer::Context;

impl Link {
    /// Accepts the latest claim ([`Event::Authenticate`]). The peer may show `message` to its user. `false` if no claim
    /// waits for an answer.
    ///
    /// By MS-CHAP, `message` is the authenticator response (`S=` and 40 digits), and may go on with ` M=` and a text (RFC
    /// 2759, section 5): without it the peer does not accept us. By EAP there is no message.
    ///
    /// A peer may renegotiate and make another claim while the owner still checks the first one. An owner that answers
    /// later compares [`Link::claims`].
    pub fn accept(&mut self, grant: &Grant, message: &[u8], ctx: &mut Context<'_>) -> bool {
        if !self.answer(true, message, ctx) {
            return false;
        }
        // The peer was challenged again while up, so network protocols that an earlier grant opened stay open.
        if !self.in_network {
            self.begin_networks(grant, ctx);
        }
        self.heed_early(ctx);
        true
    }

    /// Refuses the latest claim ([`Event::Authenticate`]), and ends the link. `false` if no claim waits for an answer. By
    /// MS-CHAP, `message` may start with `E=`, an error of RFC 2759, section 6, and a space.
    pub fn refuse(&mut self, message: &[u8], ctx: &mut Context<'_>) -> bool {
        let asked = self.answer(false, message, ctx);
        if asked {
            self.end(LinkEnd::AuthenticationFailed, ctx);
        }
        asked
    }

    /// Answers the latest claim by EAP with a further Request of the owner's server. `false` if no claim by EAP waits for
    /// an answer, or if it cannot be sent: it is no Request, is longer than the peer's MRU, has a state of over 4,096 bytes,
    /// or is the 101st.
    pub fn challenge(&mut self, challenge: Challenge<'_>, ctx: &mut Context<'_>) -> bool {
        let sent_by = (self.compression(), self.peer_mru());
        self.awaits_answer() && self.authenticator.ask_on(challenge, sent_by, ctx)
    }

    fn answer(&mut self, accepted: bool, message: &[u8], ctx: &mut Context<'_>) -> bool {
        let compression = self.compression();
        if !self.awaits_answer() {
            return false;
        }
        if self.lcp.negotiation.ask.is_some() {
            self.authenticator
                .answer(accepted, message, compression, ctx);
        } else {
            self.authenticator.answer_silently(accepted);
        }
        true
    }

    pub(super) fn handle_proof(
        &mut self,
        frame: &Frame<'_>,
        ctx: &mut Context<'_>,
    ) -> Result<(), Discard> {
        let packet = Control::parse(frame.information).map_err(|_| Discard::Malformed)?;
        let compression = self.compression();
        let is_pap = frame.protocol == protocol::PAP;
        let is_proof = match is_pap {
            true => packet.code == wire::ppp::pap::code::REQUEST,
            false => packet.code == wire::ppp::chap::code::RESPONSE,
        };
        if is_proof {
            if self.lcp.negotiation.ask.is_none() {
                return Err(Discard::Phase);
            }
            let claim = match is_pap {
                true => self.authenticator.handle_pap(&packet, compression, ctx)?,
                false => self
                    .authenticator
                    .handle_response(&packet, compression, ctx)?,
            };
            if let Some(claim) = claim {
                self.tell_claim(claim, ctx);
            }
            return Ok(());
        }
        let asked = self.lcp.negotiation.peer_asks.is_some();
        let applicant = self.applicant_mut().filter(|_| asked);
        let applicant = applicant.ok_or(Discard::Phase)?;
        let outcome = match is_pap {
            true => applicant.handle_pap(&packet)?,
            false => applicant.handle_chap(&packet, compression, ctx)?,
        };
        self.heed_outcome(outcome, ctx);
        Ok(())
    }

    pub(super) fn handle_eap(
        &mut self,
        frame: &Frame<'_>,
        ctx: &mut Context<'_>,
    ) -> Result<(), Discard> {
        let sent_by = (self.compression(), self.peer_mru());
        let claim = self
            .authenticator
            .handle_eap(frame.information, sent_by, ctx)?;
        if let Some(claim) = claim {
            self.tell_claim(claim, ctx);
        }
        Ok(())
    }

    pub(super) fn tell_claim(&mut self, claim: Claim, ctx: &mut Context<'_>) {
        self.claims = self.claims.wrapping_add(1);
        ctx.out.tell(Event::Authenticate(claim));
    }

    pub(super) fn heed_outcome(&mut self, outcome: Outcome, ctx: &mut Context<'_>) {
        match outcome {
            Outcome::Open => {}
            Outcome::Accepted => {
                ctx.out.tell(Event::Authenticated);
                self.ask_for_networks(ctx);
            }
            Outcome::Refused => self.end(LinkEnd::RefusedByPeer, ctx),
            Outcome::Unproven => self.end(LinkEnd::UnprovenPeer, ctx),
            Outcome::Silent => self.end(LinkEnd::AuthenticationTimeout, ctx),
        }
    }
}
