//! Rows of the interfaces with PPPoE subscribers.

use control::rows;

use super::Rows;
use crate::core::Core;

/// Every interface, in the order of the configuration.
pub(super) fn rows(core: &Core, out: &mut Rows) {
    let mut sessions = vec![0_u32; core.ports.len()];
    for view in core.edge.endpoint().pppoe().sessions() {
        if let Some(count) = sessions.get_mut(usize::from(view.route.port)) {
            *count += 1;
        }
    }
    for (number, sessions) in sessions.into_iter().enumerate() {
        let Some(port) = core.ports.view(number) else {
            continue;
        };
        let vlans: Vec<_> = port.vlans.iter().map(ToString::to_string).collect();
        out.push(&rows::PppoeInterface {
            schema: rows::PppoeInterface::SCHEMA,
            interface: port.name,
            state: if port.is_bound { "up" } else { "lost" },
            role: if port.is_client { "client" } else { "server" },
            mac: port.is_bound.then(|| port.mac.to_string()),
            mtu: port.mtu,
            vlans: vlans.join(" "),
            sessions,
            received: port.stats.received,
            sent: port.stats.sent,
            missed: port.stats.missed,
            refused: port.stats.refused,
            dropped: port.counts.dropped,
            other_vlan: port.counts.other_vlan,
            oversized: port.counts.oversized,
            own_mac: port.counts.own_mac,
            malformed: port.counts.malformed,
        });
    }
}
