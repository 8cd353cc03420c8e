//! cake at the root (tc-cake(8)): rate, fairness and controlled delay in one discipline.

use qos::policy::Policy;
use qos::tree::{Overhead, Spec};

use super::{Compiler, ROOT, Refusal};
use crate::object::{Cake, Handle, Object, Qdisc, QdiscKind};

/// `CAKE_DIFFSERV_DIFFSERV4` and `CAKE_DIFFSERV_BESTEFFORT`.
const DIFFSERV4: u32 = 1;
const BESTEFFORT: u32 = 3;
/// `CAKE_FLOW_FLOWS`, `CAKE_FLOW_DUAL_SRC` and `CAKE_FLOW_DUAL_DST`.
const FLOWS: u32 = 4;
const DUAL_SOURCE: u32 = 5;
const DUAL_DESTINATION: u32 = 6;

impl Compiler<'_> {
    pub(super) fn add_cake(&mut self) -> Result<(), Refusal> {
        if !self.abilities.cake {
            let message =
                "this kernel has no cake (module sch_cake); load it, or give queue = \"htb\"";
            return self.refuse("kernel.queue", message);
        }
        let Some((_, Spec::Fair(queue))) = self.spec.leaves.last() else {
            let message = "cake shares by host or flow; use the template \"home\" or \"gamer\", or queue = \"htb\"";
            return self.refuse("kernel.queue", message);
        };
        let policy: &Policy = self.policy;
        let kernel = policy.kernel();
        let is_up = self.place.is_up;
        let Overhead {
            per_packet,
            mpu,
            atm,
        } = policy.overhead();
        let us = |time: base::Duration| {
            let us = u32::try_from(time.as_nanos() / 1_000).unwrap_or(u32::MAX);
            us.max(1)
        };
        if !queue.codel.ecn {
            let line = "shape.ecn: cake marks packets of connections with ECN all the same; ecn = false needs queue = \
                        \"htb\"";
            self.advise(line.to_owned());
        }
        let rate_bps = self.spec.classes.first().map_or(0, |class| class.rate_bps);
        let cake = Cake {
            rate: (rate_bps / 8).max(1),
            diffserv: if policy.is_gamer() {
                DIFFSERV4
            } else {
                BESTEFFORT
            },
            flow_mode: match (queue.hosts.is_empty(), is_up) {
                (true, _) => FLOWS,
                (false, true) => DUAL_SOURCE,
                (false, false) => DUAL_DESTINATION,
            },
            overhead: per_packet,
            mpu,
            atm,
            rtt_us: us(queue.codel.interval),
            target_us: us(queue.codel.target),
            memory: u32::try_from(queue.memory_limit).unwrap_or(u32::MAX),
            nat: kernel.nat,
            wash: kernel.wash && !is_up,
            ack_filter: kernel.ack_filter && is_up,
            ingress: !is_up,
        };
        self.out.tree.push(Object::Qdisc(Qdisc {
            handle: Handle::new(ROOT, 0),
            parent: Handle::ROOT,
            added: None,
            kind: QdiscKind::Cake(cake),
            raw: None,
        }));
        Ok(())
    }
}
