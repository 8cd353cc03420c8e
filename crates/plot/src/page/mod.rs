//! Several charts in one HTML file that needs nothing else: it zooms, pans, hides series and reads values.

mod data;
mod render;
mod table;

#[cfg(test)]
mod tests;

use crate::chart::Chart;
use crate::figure::Figure;

/// What a page is made of.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Lines as they are, in letters of one width.
    Lines(String),
    /// The one sentence to remember, in larger letters.
    Lead(String),
    /// A drawing, twice: one for a screen and one for a phone. It is SVG that goes into the page as it is, with the
    /// classes of [`STYLE_SHEET`](crate::figure::STYLE_SHEET); its maker escapes names.
    Drawing {
        /// At least 860 units wide.
        wide: String,
        /// About 420 units wide.
        narrow: String,
    },
    /// A chart that zooms and reads values, with its summary below.
    Chart(Box<Chart>),
    /// A still picture.
    Figure(Box<Figure>),
    /// A table: its columns' names and its rows; cells that are numbers stand to the right.
    Table {
        /// The columns' names.
        head: Vec<String>,
        /// The rows, each with a cell for each column.
        rows: Vec<Vec<String>>,
    },
}

impl From<Chart> for Block {
    fn from(chart: Chart) -> Self {
        Self::Chart(Box::new(chart))
    }
}

impl From<Figure> for Block {
    fn from(figure: Figure) -> Self {
        Self::Figure(Box::new(figure))
    }
}

/// A page of charts, figures, tables and text, one below the other.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The page's title and first heading.
    pub title: String,
    /// One sentence below the title: when, where, how; may be empty.
    pub subtitle: String,
    /// What follows, from the top down.
    pub blocks: Vec<Block>,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// The same page with one more block.
    #[must_use]
    pub fn with(mut self, block: impl Into<Block>) -> Self {
        self.blocks.push(block.into());
        self
    }
}
