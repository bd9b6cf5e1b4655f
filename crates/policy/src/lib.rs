//! May we? robots.txt, page directives, scope; each answer names its rule.
