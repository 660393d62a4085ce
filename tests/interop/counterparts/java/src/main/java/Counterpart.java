/**
 * The official Java SDK as a counterpart: what steps.py and isthmus_server.py say, in one program.
 *
 * <pre>
 * counterpart client PLAN
 * counterpart server stdio | http PORT | sse PORT
 * </pre>
 */
public final class Counterpart {
  private Counterpart() {}

  public static void main(String[] args) throws Exception {
    if (args[0].equals("client")) {
      Visitor.visit(args[1]);
    } else {
      new Offers().serve(args);
    }
  }
}
