//! Changes of shapes and plans under load. No packet is lost.

use base::{Duration, Instant};

use crate::links::{ROOT, Terms};
use crate::spec::{Fault, Node, Plan, Shape};
use crate::tree::{Shared, Style, SubId, Tree};

/// How long a shared link that was silent may send at its rate at once.
const BURST: Duration = Duration::from_millis(5);

impl Tree {
    /// Changes a subscriber's shape. `false` if the plan lacks what the shape names.
    pub fn change(&mut self, id: SubId, shape: &Shape, now: Instant) -> bool {
        let Some(style) = self.style(shape.template) else {
            return false;
        };
        let terms = style.terms(self.options.direction.of(shape.rates));
        let Some(parent) = self.parent_of(shape.node) else {
            return false;
        };
        let Some(link) = self.links.subscriber(id.link()) else {
            return false;
        };
        link.queue.template = shape.template.0;
        let has_packets = link.queue.packets > 0;
        self.links.change(id.link(), terms, now);
        self.links.move_to(id.link(), parent, now);
        self.links.refresh(id.link(), has_packets, now);
        true
    }

    /// Changes templates and shared links. Those with the same names go on; a subscriber whose template is gone gets
    /// the first one, and a subscriber whose shared link is gone has none.
    ///
    /// # Errors
    /// The plan has a fault; then nothing changes.
    pub fn set_plan(&mut self, plan: &Plan, now: Instant) -> Result<(), Fault> {
        plan.check()?;
        let template_of: Vec<u16> = self
            .styles
            .iter()
            .map(|style| plan.template(&style.name).map_or(0, |id| id.0))
            .collect();
        self.styles = plan.templates.iter().map(Style::new).collect();
        if self.styles.is_empty() {
            self.styles.push(Style::new(&Default::default()));
        }
        let before = core::mem::take(&mut self.nodes);
        self.nodes = plan
            .nodes
            .iter()
            .map(|node| Shared {
                name: node.name.clone(),
                link: match before.iter().find(|old| old.name == node.name) {
                    Some(old) => old.link,
                    None => self.links.add(terms_of(self, node), ROOT, None, now),
                },
            })
            .collect();
        let gone: Vec<u32> = before
            .iter()
            .filter(|old| plan.node(&old.name).is_none())
            .map(|old| old.link)
            .collect();
        self.settle_leaves(&template_of, &gone, now);
        // From the top, so that no link is below itself meanwhile.
        for old in &before {
            self.links.move_to(old.link, ROOT, now);
            self.links.refresh(old.link, false, now);
        }
        for (at, node) in plan.nodes.iter().enumerate() {
            let link = self.nodes[at].link;
            let parent = self.parent_of(node.parent).unwrap_or(ROOT);
            self.links.change(link, terms_of(self, node), now);
            self.links.move_to(link, parent, now);
            self.links.refresh(link, false, now);
        }
        gone.iter().for_each(|&link| self.links.remove(link));
        Ok(())
    }

    /// Gives each subscriber its template's new number and terms, and moves those whose link is gone to the top.
    fn settle_leaves(&mut self, template_of: &[u16], gone: &[u32], now: Instant) {
        for index in 0..self.links.places() as u32 {
            let Some(link) = self.links.subscriber(index) else {
                continue;
            };
            let queue = &mut link.queue;
            let template = template_of.get(usize::from(queue.template));
            queue.template = template.copied().unwrap_or(0);
            let (has_packets, style) = (queue.packets > 0, usize::from(queue.template));
            let (bps, parent) = (link.bps(), link.parent);
            let parent = if gone.contains(&parent) { ROOT } else { parent };
            let terms = self.styles[style].terms(bps);
            self.links.change(index, terms, now);
            self.links.move_to(index, parent, now);
            self.links.refresh(index, has_packets, now);
        }
    }
}

fn terms_of(tree: &Tree, node: &Node) -> Terms {
    Terms {
        bps: tree.options.direction.of(node.rates),
        burst: BURST,
        weight: node.weight,
    }
}
