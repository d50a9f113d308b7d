package sandbox

import (
	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/helm/wire"

	"wit_component/orangery_deployer_tests"
	"wit_component/orangery_deployer_types"
)

// Tests are the tests of a release in the words of the bindings; none where there is no such release.
func Tests(
	found []wire.Test, known bool, err error,
) wit_types.Result[wit_types.Option[[]orangery_deployer_tests.Test], orangery_deployer_types.Fault] {
	type answer = wit_types.Option[[]orangery_deployer_tests.Test]
	var tests []orangery_deployer_tests.Test
	if err == nil {
		tests, err = each(found, test)
	}
	switch {
	case err != nil:
		return wit_types.Err[answer](fault(err))
	case !known:
		return wit_types.Ok[answer, orangery_deployer_types.Fault](wit_types.None[[]orangery_deployer_tests.Test]())
	default:
		return wit_types.Ok[answer, orangery_deployer_types.Fault](wit_types.Some(tests))
	}
}

func test(of wire.Test) (orangery_deployer_tests.Test, error) {
	object, err := text(of.Object)
	return orangery_deployer_tests.Test{
		Source: of.Source, Object: object, DeleteBefore: of.DeleteBefore,
		DeleteAfterSuccess: of.DeleteAfterSuccess, DeleteAfterFailure: of.DeleteAfterFailure,
	}, err
}
