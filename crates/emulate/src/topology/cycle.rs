//! Finds a cycle of providers: each network is a provider of the next network, and the last network is a provider of
//! the first.
//!
//! The conditions of Gao and Rexford exclude such cycles. With a cycle, the preferences for customers' routes may have
//! no stable state, and BGP may not converge. Start reading at [`Topology::provider_cycle`].

use super::{Relation, Topology};

/// A cycle of providers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderCycle {
    /// The routers, each a provider of the next, and the last a provider of the first.
    pub routers: Vec<u32>,
    /// The line of a file of AS relationships that closes the cycle, from 1; none if a link that is not from such a file
    /// closes it.
    pub line: Option<usize>,
}

/// How far the search has come with a router.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    /// The router is on the path that is being searched.
    OnPath,
    Done,
}

impl Topology {
    /// A cycle of providers, if there is any.
    #[must_use]
    pub fn provider_cycle(&self) -> Option<ProviderCycle> {
        let (starts, customers) = self.customers();
        let mut marks = vec![Mark::New; self.routers.len()];
        // The routers of the path, each with the place of the customer to search next.
        let mut path: Vec<(u32, u32)> = Vec::new();
        for root in 0..self.routers.len() as u32 {
            if marks[root as usize] != Mark::New {
                continue;
            }
            path.push((root, starts[root as usize]));
            marks[root as usize] = Mark::OnPath;
            while let Some((router, next)) = path.last_mut() {
                if *next == starts[*router as usize + 1] {
                    marks[*router as usize] = Mark::Done;
                    path.pop();
                    continue;
                }
                let customer = customers[*next as usize];
                *next += 1;
                match marks[customer as usize] {
                    Mark::New => {
                        marks[customer as usize] = Mark::OnPath;
                        path.push((customer, starts[customer as usize]));
                    }
                    Mark::OnPath => {
                        let on_cycle = path.iter().map(|(router, _)| *router);
                        return Some(
                            self.cycle(on_cycle.skip_while(|on| *on != customer).collect()),
                        );
                    }
                    Mark::Done => {}
                }
            }
        }
        None
    }

    fn cycle(&self, routers: Vec<u32>) -> ProviderCycle {
        let next = routers.iter().cycle().skip(1);
        let pairs: Vec<(u32, u32)> = routers.iter().copied().zip(next.copied()).collect();
        let is_in = |a: u32, b: u32| pairs.contains(&(a, b)) || pairs.contains(&(b, a));
        let last = self.links.iter().rposition(|link| is_in(link.a, link.b));
        let line = last.and_then(|link| self.lines.get(link));
        ProviderCycle {
            line: line.map(|line| *line as usize),
            routers,
        }
    }

    /// Where each router's customers start, and the customers.
    fn customers(&self) -> (Vec<u32>, Vec<u32>) {
        let pairs = || {
            self.links.iter().filter_map(|link| match link.relation {
                Relation::Customer => Some((link.a, link.b)),
                Relation::Provider => Some((link.b, link.a)),
                Relation::Peer | Relation::Open => None,
            })
        };
        let mut starts = vec![0_u32; self.routers.len() + 1];
        for (provider, _) in pairs() {
            starts[provider as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut customers = vec![0; pairs().count()];
        for (provider, customer) in pairs() {
            customers[next[provider as usize] as usize] = customer;
            next[provider as usize] += 1;
        }
        (starts, customers)
    }
}
