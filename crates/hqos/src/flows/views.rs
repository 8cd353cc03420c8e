//! A queue's hosts, for views.

use super::{Flows, Host, Members, Queue};
use crate::packets::Packets;

/// A host in a queue, for views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostView {
    /// Its address, IPv4 as `::ffff:a.b.c.d`.
    pub address: [u8; 16],
    /// Queued packets.
    pub packets: u32,
    /// Their bytes on the line.
    pub octets: u32,
    /// Its flows.
    pub flows: u32,
}

impl Flows {
    /// Up to `max` hosts of a queue. `address` returns that of a packet's host by the packet's handle.
    pub(crate) fn hosts(
        &self,
        queue: &Queue,
        packets: &Packets,
        address: impl Fn(u32) -> [u8; 16],
        max: usize,
    ) -> Vec<HostView> {
        let many = match &queue.members {
            Members::Many(many) => many,
            Members::Solo(solo) => {
                let first = solo.chain.first().filter(|_| max > 0);
                let host = first.map(|first| HostView {
                    address: address(packets.handle(first)),
                    packets: queue.packets,
                    octets: queue.octets,
                    flows: 1,
                });
                return host.into_iter().collect();
            }
        };
        let hosts = self.hosts_of(many).map(|index| &self.hosts[index as usize]);
        let hosts = hosts.filter(|host| host.packets > 0).take(max);
        hosts
            .filter_map(|host| self.host_view(host, packets, &address))
            .collect()
    }

    fn host_view(
        &self,
        host: &Host,
        packets: &Packets,
        address: impl Fn(u32) -> [u8; 16],
    ) -> Option<HostView> {
        let mut flows = 0;
        let mut first = None;
        for index in self.flows_of(host) {
            let packet = self.flows[index as usize].line.chain.first();
            flows += u32::from(packet.is_some());
            first = first.or(packet);
        }
        Some(HostView {
            address: address(packets.handle(first?)),
            packets: host.packets,
            octets: host.octets,
            flows,
        })
    }
}
