# The steps of a run, and what is said of them in the end; sourced. Every step's
# tests are counted in the file SERPCRYPT_TALLY, which go-test.awk explains.

SERPCRYPT_TALLY=$(mktemp)
export SERPCRYPT_TALLY
steps_failed=0
cannot=75 # the status of a step that cannot be done here

# step NAME COMMAND... runs the command, and says how it went.
step() {
	local name=$1 start=$SECONDS status=0
	shift
	say "== $name"
	echo "step $name" >>"$SERPCRYPT_TALLY"
	not_done_because=
	"$@" || status=$?
	case $status in
	0) say "== $name: ok, $((SECONDS - start)) s" ;;
	"$cannot") say "== $name: NOT DONE, $not_done_because" ;;
	*)
		say "== $name: FAILED"
		echo failed >>"$SERPCRYPT_TALLY"
		steps_failed=$((steps_failed + 1))
		;;
	esac
}

# not_done WHY is what a step returns with when it cannot be done here.
not_done() {
	not_done_because=$1
	echo "not done $1" >>"$SERPCRYPT_TALLY"
	return $cannot
}

# summary says last what failed, as logs may be cut at their top, and returns
# whether all is well.
summary() {
	awk '
	/^step / { step = substr($0, 6); told = 0; next }
	/^! / { tell(": " substr($0, 3)); told = 1; next }
	/^failed$/ { if (!told) tell(""); steps++; next }
	/^not done / { print "\nnot done: " step ", " substr($0, 10); next }
	{ pass += $1; fail += $2; skip += $3 }
	END { print "\n" pass + 0 " passed, " (fail ? fail : steps + 0) " failed, " skip + 0 " skipped" }
	function tell(what) {
		if (!failures++) print "\nfailed:"
		print "  " step what
	}' "$SERPCRYPT_TALLY"
	rm -f "$SERPCRYPT_TALLY"
	[ $steps_failed = 0 ]
}
