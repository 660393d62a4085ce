// Opened from the disk (file:), a page may start no worker: the search runs in a frame of the page.
if (location.protocol === "file:") {
  window.Worker = class {
    onmessage = null;
    onerror = null;
    onmessageerror = null;
    #frame = document.createElement("iframe");
    #waiting = [];

    constructor(address) {
      const script = document.createElement("script");
      script.src = new URL(address, document.baseURI).href;
      this.#frame.hidden = true;
      this.#frame.title = "search";
      this.#frame.srcdoc = script.outerHTML;
      this.#frame.addEventListener("load", () => this.#start());
      document.body.append(this.#frame);
    }

    postMessage(data) {
      this.#waiting?.push(data) ?? this.#send(data);
    }

    terminate() {
      this.#frame.remove();
    }

    #start() {
      this.#frame.contentWindow.postMessage = (data) =>
        setTimeout(() => this.onmessage?.({ data: structuredClone(data) }));
      const waiting = this.#waiting;
      this.#waiting = null;
      waiting.forEach((data) => this.#send(data));
    }

    #send(data) {
      const inner = this.#frame.contentWindow;
      setTimeout(() => inner?.onmessage?.({ data: structuredClone(data) }));
    }
  };
}
