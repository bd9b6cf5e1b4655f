//! Joins glyphs into lines. Glyphs are taken in the order in which the page draws them.

use pdf_extract::{MediaBox, OutputDev, OutputError, Transform};

/// Minimum gap between two glyphs that counts as a space, as a fraction of the font size.
const SPACE_GAP: f64 = 0.15;
/// Minimum vertical distance between two consecutive glyphs that begins a new line, as a fraction
/// of the font size. Subscripts and superscripts are closer to their neighbours, so they stay on
/// the same line.
const LINE_GAP: f64 = 0.6;

/// A line of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TextLine {
    pub(super) text: String,
    /// The page number, from 1.
    pub(super) page: u32,
    /// The largest font size in the line, in points.
    pub(super) size: f64,
    /// The height of the first letter above the bottom of the page, in points.
    pub(super) height: f64,
}

/// Collects the lines of pages.
pub(super) struct GlyphLineBuilder {
    lines: Vec<TextLine>,
    line: TextLine,
    page: u32,
    /// The position after the last glyph: its right edge, and its height above the bottom of the
    /// page. `None` at the start of a line.
    last: Option<(f64, f64)>,
    is_first_of_word: bool,
    bytes: usize,
    max_bytes: usize,
}

impl GlyphLineBuilder {
    /// Creates a reader that stops after about `max_bytes` bytes of text.
    pub(super) fn new(max_bytes: usize) -> GlyphLineBuilder {
        GlyphLineBuilder {
            lines: Vec::new(),
            line: TextLine::default(),
            page: 0,
            last: None,
            is_first_of_word: false,
            bytes: 0,
            max_bytes,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= self.max_bytes
    }

    pub(super) fn finish(mut self) -> Vec<TextLine> {
        self.end_of_line();
        self.lines
    }

    fn end_of_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !text.is_empty() {
            self.lines.push(TextLine { text, ..line });
        }
        self.last = None;
    }
}

impl OutputDev for GlyphLineBuilder {
    fn begin_page(
        &mut self,
        page: u32,
        _: &MediaBox,
        _: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.end_of_line();
        self.page = page;
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.end_of_line();
        Ok(())
    }

    fn output_character(
        &mut self,
        place: &Transform,
        width: f64,
        _spacing: f64,
        font_size: f64,
        text: &str,
    ) -> Result<(), OutputError> {
        if self.is_full() {
            return Ok(());
        }
        let scale = (place.m11 * place.m22 - place.m12 * place.m21).abs().sqrt();
        let size = scale * font_size.abs();
        let (x, y) = (place.m31, place.m32);
        if let Some((end, height)) = self.last.filter(|_| self.is_first_of_word) {
            let is_other_line = (y - height).abs() > size * LINE_GAP;
            if is_other_line || x < end - size {
                self.end_of_line();
            } else if x > end + size * SPACE_GAP {
                self.line.text.push(' ');
            }
        }
        if self.line.text.is_empty() {
            self.line.page = self.page;
            self.line.height = y;
        }
        self.line.text.push_str(text);
        if !text.trim().is_empty() && size.is_finite() {
            self.line.size = self.line.size.max(size);
        }
        self.bytes += text.len();
        self.is_first_of_word = false;
        self.last = Some((x + width * size, y));
        Ok(())
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.is_first_of_word = true;
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        Ok(())
    }
}
