"""Cards of questions: what a person sees before they decide, the same at a terminal and on a page."""
