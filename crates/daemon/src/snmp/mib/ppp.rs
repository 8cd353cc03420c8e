//! Parts of PPP-LCP-MIB (RFC 1471) and PPP-IP-NCP-MIB (RFC 1473): a row for each subscriber's link.

use agentx::pdu::Value;
use edge::access::Either::First;
use ppp::State;

use super::TUNNELS;
use crate::core::Core;
use crate::served::SubscriberView;

/// pppLinkStatusTable
pub(super) fn link_status(core: &Core, view: &SubscriberView<'_>, column: u32) -> Option<Value> {
    let link = view.link.view();
    let compresses = |on: bool| Value::Integer(if on { 1 } else { 2 });
    Some(match column {
        // pppLinkStatusPhysicalIndex: the tunnel, if there is one
        1 => Value::Integer(match view.session {
            First(session) => {
                let session = core.edge.endpoint().l2tp().session(session);
                session.map_or(0, |session| TUNNELS + session.tunnel.index()) as i32
            }
            _ => 0,
        }),
        6 => Value::Integer(i32::from(link.local.mru)),
        7 => Value::Integer(i32::from(link.peer.mru)),
        // Neither L2TP nor PPPoE has octets to escape.
        8 | 9 => Value::Octets(vec![0; 4]),
        // What the peer accepts is what we may send compressed.
        10 => compresses(link.peer.compression.protocol),
        11 => compresses(link.local.compression.protocol),
        12 => compresses(link.peer.compression.address),
        13 => compresses(link.local.compression.address),
        // Frames have no FCS.
        14 | 15 => Value::Integer(0),
        _ => return None,
    })
}

/// pppIpTable
pub(super) fn ip_status(view: &SubscriberView<'_>, column: u32) -> Option<Value> {
    let ipcp = view.link.view().ipv4;
    let is_open = ipcp.is_some_and(|(state, _)| state == State::Opened);
    Some(match column {
        // pppIpOperStatus: opened or not-opened
        1 => Value::Integer(if is_open { 1 } else { 2 }),
        // No compression protocol is negotiated.
        2 | 3 => Value::Integer(1),
        _ => return None,
    })
}
