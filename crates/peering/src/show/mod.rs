//! What operators see of a BGP speaker: the daemon's own, and each of an emulation.

mod answer;
mod neighbor;
mod route;

pub use answer::{Aside, BgpShow};

use std::net::IpAddr;

use base::Instant;
use bgp::{PeerId, Speaker};
use wire::bgp::Families;

use control::reply::{Code, Refusal};
use control::request::{BgpPeer, BgpVerb};

/// The peer of that address or name.
pub fn find_peer(speaker: &Speaker, text: &str) -> Result<PeerId, Refusal> {
    let by_address = text.parse::<IpAddr>().ok();
    let found = by_address.and_then(|address| speaker.peer(address.to_canonical()));
    found.or_else(|| speaker.peer_named(text)).ok_or_else(|| {
        let message = format!("no BGP peer has the address or name \"{text}\"");
        Refusal::new(Code::NotFound, message)
    })
}

/// The address of a dynamic peer that is gone, if there is something left to look at.
fn past_peer(speaker: &Speaker, text: &str) -> Option<IpAddr> {
    let address = text.parse::<IpAddr>().ok()?.to_canonical();
    let past = speaker.past_neighbor(address, Instant::ZERO)?;
    Some(past.remote)
}

/// Does to a peer, or to all, what was asked; how many that were.
pub fn act(speaker: &mut Speaker, asked: &BgpPeer, now: Instant) -> Result<u64, Refusal> {
    let mut peers = Vec::new();
    if asked.peer == "all" {
        let mut from = PeerId(0);
        while let Some(view) = speaker.next_neighbor(from, now) {
            peers.push(view.id);
            from = PeerId(view.id.0 + 1);
        }
    } else {
        peers.push(find_peer(speaker, &asked.peer)?);
    }
    let mut done = 0;
    for &peer in &peers {
        done += u64::from(match asked.verb {
            BgpVerb::Start => {
                speaker.start_peer(peer, now);
                true
            }
            BgpVerb::Stop => {
                speaker.stop_peer(peer, &asked.text, now);
                true
            }
            BgpVerb::Reset => {
                speaker.reset_peer(peer, &asked.text, now);
                true
            }
            BgpVerb::RefreshIn => speaker.refresh_in(peer, Families::ALL, now),
            BgpVerb::RefreshOut => speaker.refresh_out(peer, Families::ALL, now),
        });
    }
    if done == 0 && asked.peer != "all" {
        let message = "the session is not Established, or the peer does not know route refresh";
        return Err(Refusal::new(Code::Refused, message));
    }
    Ok(done)
}
