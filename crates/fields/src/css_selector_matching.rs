//! Matches selectors against the elements of a tree, and counts the steps.
//!
//! The selector engine walks from an element to its ancestors and siblings. A selector such as `h2
//! ~ p` may walk past all siblings of each element. So the engine gets elements of type
//! [`BudgetedElement`], which count each step. Once no steps are left, an element pretends to have
//! no ancestors or siblings.

use html5ever::Namespace;
use scraper::ElementRef;
use scraper::selector::{CssLocalName, CssString, NonTSPseudoClass, PseudoElement, Simple};
use selectors::attr::{AttrSelectorOperation, CaseSensitivity, NamespaceConstraint};
use selectors::bloom::BloomFilter;
use selectors::matching::{
    self, ElementSelectorFlags, MatchingContext, MatchingForInvalidation, MatchingMode,
    NeedsSelectorFlags, QuirksMode, SelectorCaches,
};
use selectors::parser::{ParseRelative, SelectorList};
use selectors::{Element, OpaqueElement};

use crate::rule_work_budget::RuleWorkBudget;

/// A list of CSS selectors, separated by commas.
#[derive(Clone, Debug)]
pub(crate) struct CssSelectorList(SelectorList<Simple>);

impl CssSelectorList {
    /// Parses a selector. An error contains the position of the mistake in characters, and the
    /// reason.
    pub(crate) fn parse(text: &str) -> Result<CssSelectorList, (usize, String)> {
        let mut parser = cssparser::Parser::new(text);
        let parsed =
            SelectorList::parse(&scraper::selector::Parser, &mut parser, ParseRelative::No);
        parsed.map(CssSelectorList).map_err(|error| {
            // The parser stops after the token that it rejects, so the mistake is before its
            // position.
            let stop = text.floor_char_boundary(parser.position().byte_index());
            let at = text[..stop].chars().count().saturating_sub(1);
            let why = scraper::error::SelectorErrorKind::from(error);
            (at, words(&why))
        })
    }

    /// Returns the elements below `scope` that match the selector, in page order. If `scope` is the
    /// root element of the page, `scope` itself may match too.
    pub(crate) fn matches<'a>(
        &'a self,
        scope: ElementRef<'a>,
        budget: &'a RuleWorkBudget,
    ) -> impl Iterator<Item = ElementRef<'a>> {
        let mut caches = SelectorCaches::default();
        let is_root = scope
            .parent()
            .is_none_or(|parent| parent.value().is_document());
        let skipped = usize::from(!is_root);
        let elements = scope.descendants().skip(skipped);
        elements
            .take_while(|_| budget.step())
            .filter_map(ElementRef::wrap)
            .filter(move |element| self.is_match(*element, scope, &mut caches, budget))
    }

    fn is_match<'a>(
        &self,
        element: ElementRef<'a>,
        scope: ElementRef<'a>,
        caches: &mut SelectorCaches,
        budget: &RuleWorkBudget,
    ) -> bool {
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        context.scope_element = Some(Element::opaque(&scope));
        let element = BudgetedElement { element, budget };
        let mut list = self.0.slice().iter();
        list.any(|one| matching::matches_selector(one, 0, None, &element, &mut context))
    }
}

fn words(why: &scraper::error::SelectorErrorKind) -> String {
    use scraper::error::SelectorErrorKind as Kind;
    use selectors::parser::SelectorParseErrorKind as Parse;
    match why {
        Kind::EndOfLine => "it ends too early".to_owned(),
        Kind::UnexpectedSelectorParseError(Parse::UnsupportedPseudoClassOrElement) => {
            "this pseudo-class or pseudo-element is not supported".to_owned()
        }
        Kind::UnexpectedSelectorParseError(Parse::EmptySelector | Parse::DanglingCombinator) => {
            "a part of it is missing".to_owned()
        }
        Kind::ExpectedColonOnPseudoElement | Kind::ExpectedIdentityOnPseudoElement => {
            "pseudo-elements are not supported".to_owned()
        }
        _ => "this is not a CSS selector".to_owned(),
    }
}

/// An element that takes a step from the budget whenever the engine moves to another element.
#[derive(Clone)]
struct BudgetedElement<'a, 'b> {
    element: ElementRef<'a>,
    budget: &'b RuleWorkBudget,
}

impl std::fmt::Debug for BudgetedElement<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.element.fmt(f)
    }
}

impl<'a> BudgetedElement<'a, '_> {
    fn step(&self, to: impl FnOnce(&ElementRef<'a>) -> Option<ElementRef<'a>>) -> Option<Self> {
        let element = self.budget.step().then(|| to(&self.element))??;
        Some(BudgetedElement { element, ..*self })
    }
}

impl Element for BudgetedElement<'_, '_> {
    type Impl = Simple;

    fn opaque(&self) -> OpaqueElement {
        self.element.opaque()
    }

    fn parent_element(&self) -> Option<Self> {
        self.step(Element::parent_element)
    }

    fn parent_node_is_shadow_root(&self) -> bool {
        false
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        None
    }

    fn is_pseudo_element(&self) -> bool {
        false
    }

    fn is_part(&self, _: &CssLocalName) -> bool {
        false
    }

    fn imported_part(&self, _: &CssLocalName) -> Option<CssLocalName> {
        None
    }

    fn is_same_type(&self, other: &Self) -> bool {
        self.element.is_same_type(&other.element)
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.step(Element::prev_sibling_element)
    }

    fn next_sibling_element(&self) -> Option<Self> {
        self.step(Element::next_sibling_element)
    }

    fn first_element_child(&self) -> Option<Self> {
        self.step(Element::first_element_child)
    }

    fn is_html_element_in_html_document(&self) -> bool {
        self.element.is_html_element_in_html_document()
    }

    fn has_local_name(&self, name: &CssLocalName) -> bool {
        self.element.has_local_name(name)
    }

    fn has_namespace(&self, namespace: &Namespace) -> bool {
        self.element.has_namespace(namespace)
    }

    fn attr_matches(
        &self,
        ns: &NamespaceConstraint<&Namespace>,
        local_name: &CssLocalName,
        operation: &AttrSelectorOperation<&CssString>,
    ) -> bool {
        self.element.attr_matches(ns, local_name, operation)
    }

    fn match_non_ts_pseudo_class(
        &self,
        class: &NonTSPseudoClass,
        _: &mut MatchingContext<'_, Simple>,
    ) -> bool {
        match *class {}
    }

    fn match_pseudo_element(
        &self,
        element: &PseudoElement,
        _: &mut MatchingContext<'_, Simple>,
    ) -> bool {
        match *element {}
    }

    fn is_link(&self) -> bool {
        self.element.is_link()
    }

    fn is_html_slot_element(&self) -> bool {
        false
    }

    fn has_id(&self, id: &CssLocalName, case: CaseSensitivity) -> bool {
        self.element.has_id(id, case)
    }

    fn has_class(&self, name: &CssLocalName, case: CaseSensitivity) -> bool {
        self.element.has_class(name, case)
    }

    fn has_custom_state(&self, _: &CssLocalName) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        self.element.is_empty()
    }

    fn is_root(&self) -> bool {
        self.element.is_root()
    }

    fn apply_selector_flags(&self, _: ElementSelectorFlags) {}

    fn add_element_unique_hashes(&self, _: &mut BloomFilter) -> bool {
        false
    }
}
