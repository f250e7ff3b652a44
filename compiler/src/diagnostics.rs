//! Errors in HLO text as compilers show them: the line, a caret, a remedy.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use slabplan_ir::text::Diagnostic;
use slabplan_ir::verify::VerifyError;

/// Longest line that is shown whole; compiled modules have lines of many kilobytes.
const MAX_LINE: usize = 160;

/// Renders an error of the parser. `name` is what the text is called.
pub fn render(name: &str, text: &str, d: &Diagnostic, colour: bool) -> String {
    let place = Place {
        name,
        text,
        span: d.span.clone(),
    };
    snippet(&place, &d.message, &d.label, d.help.as_deref(), colour)
}

/// Renders an error of the verifier; `text` is absent where the module did not come as text.
pub fn render_verify(name: &str, text: Option<&str>, e: &VerifyError, colour: bool) -> String {
    let Some(text) = text.filter(|t| e.line_column(t).is_some()) else {
        return format!("error: {name}: {e}");
    };
    render_at(name, text, e.offset, (&e.message, &e.remedy), colour)
}

/// Renders what is wrong, and what to do, with the instruction whose name begins at byte `offset` of `text`.
pub(crate) fn render_at(
    name: &str,
    text: &str,
    offset: usize,
    (message, remedy): (&str, &str),
    colour: bool,
) -> String {
    let name_end = text[offset..]
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))
        .map_or(text.len(), |n| offset + n);
    let place = Place {
        name,
        text,
        span: offset..name_end,
    };
    snippet(&place, message, "", Some(remedy), colour)
}

struct Place<'a> {
    name: &'a str,
    text: &'a str,
    span: Range<usize>,
}

fn snippet(
    place: &Place<'_>,
    message: &str,
    label: &str,
    help: Option<&str>,
    colour: bool,
) -> String {
    let window = line_window(place.text, &place.span);
    let start = place.span.start.max(window.start) - window.start;
    let end = place.span.end.clamp(window.start + start, window.end) - window.start;
    let line = 1 + place.text[..window.start].matches('\n').count();
    let annotation = AnnotationKind::Primary.span(start..end.max(start));
    let mut group = Group::with_title(Level::ERROR.primary_title(message)).element(
        Snippet::source(&place.text[window])
            .path(place.name)
            .line_start(line)
            .annotation(if label.is_empty() {
                annotation
            } else {
                annotation.label(label)
            }),
    );
    if let Some(help) = help.filter(|h| !h.is_empty()) {
        group = group.element(Level::HELP.message(help));
    }
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group]).clone()
}

/// The line of the span, or the part of it around the span where the line is very long.
fn line_window(text: &str, span: &Range<usize>) -> Range<usize> {
    let mut start = text[..span.start].rfind('\n').map_or(0, |n| n + 1);
    let mut end = text[span.start..]
        .find('\n')
        .map_or(text.len(), |n| span.start + n);
    // The column must stay right, so the start of the line is kept where it can be.
    if span.start - start > 100 * MAX_LINE {
        start = text.floor_char_boundary(span.start - MAX_LINE);
    }
    if end - span.start > MAX_LINE {
        end = text.ceil_char_boundary(span.start + MAX_LINE);
    }
    start..end
}
