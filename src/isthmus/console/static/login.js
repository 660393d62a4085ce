// Signs in with the token that stands in the fragment of the address: it is posted once, and gone.
export function begin() {
  const form = document.getElementById("login");
  if (!form) return false;
  const token = location.hash.slice(1);
  if (token && form.elements) {
    history.replaceState(null, "", location.pathname);
    form.elements.token.value = token;
    form.submit();
  }
  return true;
}
