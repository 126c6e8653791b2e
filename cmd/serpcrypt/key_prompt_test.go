package main

import (
	"os/exec"
	"testing"
)

func TestKeysOnTerminal(t *testing.T) {
	box := newBox(t)
	run := func(words ...string) *session {
		return startOnTerminal(t, exec.Command("serpcrypt", append(words, box)...))
	}
	ask, askNew := "Passphrase for "+box+": ", "New passphrase for "+box+": "

	s := run("key", "add", "--pbkdf-force-iterations", "1000")
	s.answer(ask, "wrong\r")
	s.answer("error: no key slot opens with this passphrase\r\n"+ask, testPassphrase+"\r")
	s.answer(askNew, "two\r")
	s.answer("The same again: ", "too\r")
	s.answer("They differ. Once more.\r\n"+askNew, "two\r")
	s.answer("The same again: ", "two\r")
	s.end(0, "Key slot 1 of "+box+" opens now as well")
	opensSlot(t, box, "two", 1)

	s = run("key", "change", "--pbkdf-force-iterations", "1000")
	s.answer(ask, "two\r")
	s.answer(askNew, "half a pass\x03")
	s.end(130, "error: interrupted by SIGINT")
	opensSlot(t, box, "two", 1)

	s = run("key", "remove", "-S", "1")
	s.answer(ask, "two\r")
	s.end(exitPermission, "this is the passphrase of key slot 1, which is to be removed")
	s = run("key", "remove", "-S", "1")
	s.answer(ask, testPassphrase+"\r")
	s.end(0, "Key slot 1 of "+box+" is destroyed")

	// The last key, and all that there are, go after the word YES alone.
	const question = "Type YES to go on: "
	before := content(t, box)
	s = run("key", "remove")
	s.answer(ask, testPassphrase+"\r")
	s.answer(question, "yes\n")
	s.end(exitBusy, "key slot 0 is the last one of "+box+": without it nobody will ever open the container again: not confirmed")
	s = run("erase")
	s.answer(question, "no\n")
	s.end(exitBusy, "not confirmed")
	if content(t, box) != before {
		t.Fatal("the container has changed without a confirmation")
	}
	s = run("key", "remove")
	s.answer(ask, testPassphrase+"\r")
	s.answer(question, "YES\n")
	s.end(0, "Key slot 0 of "+box+" is destroyed")

	box = newBox(t)
	s = run("erase")
	s.answer(question, "YES\n")
	s.end(0, "Every key slot of "+box+" is destroyed")
	serpcrypt(t, testPassphrase, "key", "test", box).must(t, exitUsage)
}

// TestContainerReplacedMeanwhile: a key that is made in a file which has lost its
// name would be lost with it.
func TestContainerReplacedMeanwhile(t *testing.T) {
	box := newBox(t)
	s := startOnTerminal(t, exec.Command("serpcrypt", "key", "add", "--pbkdf-force-iterations", "1000", box))
	s.answer("Passphrase for "+box+": ", testPassphrase+"\r")
	s.answer("New passphrase for "+box+": ", "two\r")
	before := content(t, box)
	for _, command := range [][]string{{"mv", box, box + ".old"}, {"cp", box + ".old", box}} {
		if err := exec.Command(command[0], command[1:]...).Run(); err != nil {
			t.Fatal(err)
		}
	}
	s.answer("The same again: ", "two\r")
	s.end(exitBusy, "hint: nothing has been written: try again")
	if content(t, box) != before || content(t, box+".old") != before {
		t.Error("one of the files has changed")
	}
}
