//! Opens connections between routers in memory: request, acceptance, refusal. Each takes one
//! one-way delay of the link, as with TCP.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bgp::ConnId;
use wire::bgp::PORT;

use super::World;
use super::links::End;
use super::post::{Lane, Parcel, What};

/// The first ephemeral port.
const PORT_FIRST: u16 = 49_152;

impl World {
    /// A router requests a connection.
    pub(super) fn dial(&mut self, router: u32, conn: ConnId, remote: IpAddr) {
        let peer = match remote {
            IpAddr::V4(address) => self.by_address.get(&address).copied(),
            IpAddr::V6(_) => None,
        };
        let link = peer.and_then(|peer| self.lines.between(router, peer));
        let Some((peer, link)) = peer.zip(link) else {
            return;
        };
        let lane = self.lines.lane(&self.scenario.topology, link);
        self.place(
            router,
            End {
                conn,
                peer,
                far: None,
                link,
                lane,
                is_far_up: false,
            },
        );
        // Over a cut link no answer arrives; the dialler's own timer ends the attempt.
        if self.lines.is_up[link as usize] {
            let what = What::Dial(link);
            let parcel = Parcel {
                router: peer,
                what,
                conn,
            };
            self.send_over(link, lane, router, parcel);
        }
    }

    /// A connection request has arrived at a router.
    pub(super) fn dialled(&mut self, link: u32, parcel: Parcel) {
        let scenario = Arc::clone(&self.scenario);
        let topology = &scenario.topology;
        let router = parcel.router;
        let ends = topology.links[link as usize];
        let dialler = if ends.a == router { ends.b } else { ends.a };
        if !self.lines.is_up[link as usize] {
            return;
        }
        let lane = self.lines.lane(topology, link);
        let address = |of: u32| IpAddr::V4(topology.routers[of as usize].address);
        let remote = SocketAddr::new(address(dialler), port(parcel.conn));
        let local = SocketAddr::new(address(router), PORT);
        let now = self.now;
        let accepted = match &mut self.nodes[router as usize].speaker {
            Some(speaker) => speaker.accept(remote, local, now).ok(),
            None => None,
        };
        let mut answer = Parcel {
            router: dialler,
            what: What::Refused,
            conn: parcel.conn,
        };
        if let Some(conn) = accepted {
            answer.what = What::Granted;
            self.place(
                router,
                End {
                    conn,
                    peer: dialler,
                    far: Some(parcel.conn),
                    link,
                    lane,
                    is_far_up: false,
                },
            );
            let asked = self.end_mut(dialler, parcel.conn);
            match asked.filter(|end| end.lane != Lane::LOST) {
                Some(end) => end.far = Some(conn),
                // The dialler has given up meanwhile.
                None => self.hear_nothing(router, conn),
            }
            self.wake(router);
        }
        self.send_over(link, lane, router, answer);
    }

    /// The dialler's request was accepted.
    pub(super) fn granted(&mut self, parcel: Parcel) {
        let router = parcel.router;
        let address = self.scenario.topology.routers[router as usize].address;
        let local = SocketAddr::new(IpAddr::V4(address), port(parcel.conn));
        if let Some(speaker) = &mut self.nodes[router as usize].speaker {
            speaker.connected(parcel.conn, local, self.now);
            self.wake(router);
        }
    }

    /// Ends a connection whose other end disappeared before it was established.
    fn hear_nothing(&mut self, router: u32, conn: ConnId) {
        if let Some(end) = self.end_mut(router, conn) {
            end.far = None;
            end.lane = Lane::LOST;
        }
        if let Some(speaker) = &mut self.nodes[router as usize].speaker {
            speaker.closed(conn, self.now);
        }
    }
}

fn port(conn: ConnId) -> u16 {
    PORT_FIRST + (conn.index() % u32::from(u16::MAX - PORT_FIRST)) as u16
}
