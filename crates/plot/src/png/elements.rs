//! The elements of an SVG that this crate wrote: no entities but the five of XML, no comments, no name spaces.

/// A piece of the text, in its order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Piece<'a> {
    /// An element starts; `is_empty` if it ends at once.
    Start {
        element: Element<'a>,
        is_empty: bool,
    },
    /// An element of this name ends.
    End(&'a str),
    /// Characters between elements, still escaped.
    Text(&'a str),
}

/// An element's name and attributes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Element<'a> {
    pub(super) name: &'a str,
    attributes: &'a str,
}

impl<'a> Element<'a> {
    /// The value of an attribute, still escaped.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.attributes;
        while let Some((before, after)) = rest.split_once("=\"") {
            let (value, after) = after.split_once('"')?;
            if before.trim() == name {
                return Some(value);
            }
            rest = after;
        }
        None
    }

    pub(super) fn number(&self, name: &str) -> Option<f32> {
        self.get(name)?.parse().ok().filter(|n: &f32| n.is_finite())
    }
}

/// The pieces of a document.
pub(super) fn pieces(svg: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = svg;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(inside) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            let text = &rest[..end];
            rest = &rest[end..];
            return Some(Piece::Text(text));
        };
        let (tag, after) = inside.split_once('>')?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            return Some(Piece::End(name.trim()));
        }
        let (tag, is_empty) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let (name, attributes) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        let element = Element { name, attributes };
        Some(Piece::Start { element, is_empty })
    })
}

/// The width and height of the document in its units; `None` if it is not one of ours.
pub(super) fn size(svg: &str) -> Option<[f64; 2]> {
    let Piece::Start { element, .. } = pieces(svg).next()? else {
        return None;
    };
    let side = |name| element.number(name).map(f64::from);
    let sides = [side("width")?, side("height")?];
    (element.name == "svg").then_some(sides)
}

/// Text without the entities that [`escape`](crate::escape) writes.
pub(super) fn unescaped(text: &str) -> String {
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    let plain = |text: String, (entity, character): (&str, &str)| text.replace(entity, character);
    entities.into_iter().fold(text.to_owned(), plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_in_order_with_their_attributes() {
        let all: Vec<_> =
            pieces("<svg a=\"1\" width=\"20\"><p d=\"M1 2\"/>x &lt; y</svg>\n").collect();
        let Piece::Start { element, is_empty } = all[1] else {
            panic!("{:?}", all[1]);
        };
        assert!(is_empty && element.name == "p");
        assert_eq!((element.get("d"), element.get("e")), (Some("M1 2"), None));
        assert_eq!(all[2], Piece::Text("x &lt; y"));
        assert_eq!(all[3], Piece::End("svg"));
        let text = "<a> & 'b' \"c\" &amp;lt;";
        assert_eq!(unescaped(&crate::escape(text)), text);
    }

    #[test]
    fn a_document_without_a_size_is_none_of_ours() {
        assert_eq!(
            size("<svg width=\"3\" height=\"4.5\"></svg>"),
            Some([3.0, 4.5])
        );
        for other in [
            "",
            "text",
            "<p>",
            "<svg>",
            "<svg width=\"3\">",
            "<p width=\"3\" height=\"4\">",
        ] {
            assert_eq!(size(other), None, "{other}");
        }
    }
}
