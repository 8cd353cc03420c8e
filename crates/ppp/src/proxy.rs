//! LCP and authentication that an L2TP access concentrator negotiated in our name before it handed a call over (RFC
//! 2661, section 4.4.5).

use base::Redacted;
use wire::ppp::control::Options;

use crate::config::Authentication;
use crate::event::{Claim, Proof};
use crate::layer::{Context, Judgement, Negotiation as _};
use crate::lcp::Lcp;

/// A proxied negotiation, as its AVPs describe it.
#[derive(Clone, Debug)]
pub struct Proxy<'a> {
    /// Options of the last Configure-Request that was sent to the peer (Last Sent LCP CONFREQ).
    pub sent: &'a [u8],
    /// Options of the last Configure-Request that the peer sent (Last Received LCP CONFREQ).
    pub received: &'a [u8],
    /// The peer's proof, if it gave one.
    pub proof: Option<ProxyProof<'a>>,
}

/// A proxied proof (the Proxy Authen AVPs).
#[derive(Clone, Debug)]
pub struct ProxyProof<'a> {
    /// The authentication protocol (Proxy Authen Type).
    pub by: Authentication,
    /// The peer's name (Proxy Authen Name).
    pub name: &'a [u8],
    /// The identifier (Proxy Authen ID).
    pub identifier: u8,
    /// The challenge (Proxy Authen Challenge), which only CHAP has.
    pub challenge: &'a [u8],
    /// The response, or the password (Proxy Authen Response).
    pub response: Redacted<&'a [u8]>,
}

impl Proxy<'_> {
    /// Takes over the negotiated options. `false` if we would not have agreed to them.
    pub(crate) fn adopt(&self, lcp: &mut Lcp, ctx: &mut Context<'_>) -> bool {
        let (sent, received) = (Options::new(self.sent), Options::new(self.received));
        if self.sent.is_empty() || !sent.are_whole() || !received.are_whole() {
            return false;
        }
        if !lcp.take_over(sent, ctx.config) {
            return false;
        }
        for option in received {
            if !matches!(lcp.judge(&option, ctx.random), Judgement::Agree) {
                return false;
            }
        }
        lcp.agree(received);
        true
    }

    /// The peer's claim, if its proof matches the negotiated authentication protocol.
    pub(crate) fn claim(&self, negotiated: Option<Authentication>) -> Option<Claim> {
        let proof = self
            .proof
            .as_ref()
            .filter(|proof| Some(proof.by) == negotiated)?;
        let response = *proof.response.reveal();
        let proven = match proof.by {
            Authentication::Pap => Proof::Pap {
                identifier: proof.identifier,
                password: Redacted::new(response.into()),
            },
            Authentication::ChapMd5 => Proof::Chap {
                identifier: proof.identifier,
                challenge: proof.challenge.into(),
                response: response.try_into().ok()?,
            },
            // RFC 2661, section 4.4.5, has no type for these: the peer is asked again.
            Authentication::MsChapV2 | Authentication::Eap => return None,
        };
        let name = proof.name[..proof.name.len().min(255)].into();
        Some(Claim {
            name,
            proof: proven,
        })
    }
}
